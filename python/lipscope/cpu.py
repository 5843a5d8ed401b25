"""Whether this machine can run the module: a clear sentence instead of an illegal instruction."""

from __future__ import annotations

from lipscope._arch import ARCH

__all__ = ["missing_flags", "require_cpu"]

# x86-64-v3, as /proc/cpuinfo calls its parts
_NEEDED = frozenset({"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"})


def missing_flags(cpuinfo: str) -> list[str]:
    """What x86-64-v3 needs and the first CPU of this text does not have."""
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "flags":
            return sorted(_NEEDED - set(value.split()))
    return []


def require_cpu(arch: str = ARCH, cpuinfo: str = "/proc/cpuinfo") -> None:
    """ImportError on a CPU for which the module is not compiled."""
    if arch != "x86-64-v3":
        return
    try:
        with open(cpuinfo, encoding="utf-8") as file:
            missing = missing_flags(file.read())
    except OSError:
        return
    if missing:
        raise ImportError(
            "lipscope is compiled for x86-64-v3 (Intel from 2013, AMD from 2015 on), and this CPU lacks "
            f"{', '.join(missing)}. Build it from source for this machine: pip install --no-binary lipscope lipscope"
        )

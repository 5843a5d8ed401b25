"""A CPU that is too old for the module: a sentence, and no illegal instruction."""

import subprocess
import sys
import textwrap

import pytest

from lipscope.cpu import missing_flags, require_cpu

# as of an Intel CPU of 2012
OLD = "processor\t: 0\nmodel name\t: Old\nflags\t\t: fpu sse sse2 ssse3 sse4_1 sse4_2 popcnt avx f16c\nbugs\t\t:\n"
ENOUGH = OLD.replace("f16c", "f16c abm avx2 bmi1 bmi2 fma movbe")


def test_what_is_missing_is_named():
    assert missing_flags(OLD) == ["abm", "avx2", "bmi1", "bmi2", "fma", "movbe"]
    assert missing_flags(ENOUGH) == []
    assert missing_flags("processor: 0\nFeatures: fp asimd\n") == []  # says nothing of the kind


def test_an_old_cpu_is_refused_with_what_to_do(tmp_path):
    (tmp_path / "cpuinfo").write_text(OLD)
    file = str(tmp_path / "cpuinfo")
    with pytest.raises(ImportError, match=r"x86-64-v3 .* lacks abm, avx2, bmi1, bmi2, fma, movbe\. Build it from source"):
        require_cpu("x86-64-v3", file)
    require_cpu("native", file)  # compiled on this machine, for it
    require_cpu("x86-64-v3", str(tmp_path / "none"))
    (tmp_path / "cpuinfo").write_text(ENOUGH)
    require_cpu("x86-64-v3", file)


def test_the_module_is_not_loaded_on_an_old_cpu(tmp_path):
    (tmp_path / "cpuinfo").write_text(OLD)
    program = f"""
        import builtins, sys, types
        sys.modules["lipscope._arch"] = types.SimpleNamespace(ARCH="x86-64-v3")
        real = open
        builtins.open = lambda file, *a, **k: real({str(tmp_path / "cpuinfo")!r} if file == "/proc/cpuinfo" else file, *a, **k)
        try:
            import lipscope
        except ImportError as refused:
            print(refused)
        assert "lipscope._core" not in sys.modules
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "this CPU lacks abm" in done.stdout

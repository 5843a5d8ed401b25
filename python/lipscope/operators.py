"""The norm of any linear operator, with evidence on both sides."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from lipscope import _core
from lipscope.arrays import plain

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["Norm", "spectral_norm"]


@dataclasses.dataclass(frozen=True, eq=False)
class Norm:
    """The norm of an operator A, from below with a witness and, where it can be said, from above.

    ``lower <= |A| <= upper_whp`` except with probability ``delta`` over the random start of the search;
    ``|A| <= upper`` for certain. What cannot be said is None.
    """

    lower: float
    """|A v| / |v| for v = ``direction``, computed in f64 (by the products of A, if these are functions)."""
    upper_whp: float | None
    """At least the norm, except with probability ``delta``."""
    upper: float | None
    """At least the norm, for certain."""
    direction: npt.NDArray[np.float64]
    """The witness v of ``lower``."""
    lower_by: str
    upper_by: str | None
    residual: float | None
    """|A^T A v - s^2 v| / s^2 at s = ``lower`` and the unit vector v; of the 2-norm alone."""
    steps: int
    status: Literal["converged", "not-converged"]
    delta: float | None
    norm: str
    shape: tuple[int, int]

    def __repr__(self) -> str:
        above = [
            f"{name}={value:.6g}"
            for name, value in (("upper_whp", self.upper_whp), ("upper", self.upper))
            if value is not None
        ]
        return (
            f"Norm(lower={self.lower:.6g}, {''.join(a + ', ' for a in above)}"
            f"norm={self.norm!r}, shape={self.shape}, steps={self.steps}, status={self.status!r})"
        )


def norm_of(found: dict[str, Any], norm: str, shape: tuple[int, int]) -> Norm:
    """The answer of the core as a :class:`Norm`."""
    status = "converged" if found.pop("converged") else "not-converged"
    return Norm(**found, status=status, norm=norm, shape=shape)  # type: ignore[arg-type]


def _dtype_is_f32(dtype: Any, op: Any) -> bool:
    import numpy as np

    wanted = dtype if dtype is not None else getattr(op, "dtype", None)
    wanted = np.dtype(np.float64 if wanted is None else wanted)
    if wanted == np.float32:
        return True
    if wanted.kind in "iu" or wanted == np.float64:
        return False
    raise ValueError(f"dtype: expected float32 or float64, got {wanted}")


def _functions(op: Any, shape: tuple[int, int] | None) -> tuple[Callable[..., Any], Callable[..., Any], int, int]:
    if isinstance(op, tuple):
        if len(op) != 2 or not all(callable(f) for f in op):
            raise TypeError("op: expected a pair of functions (matvec, rmatvec)")
        if shape is None:
            raise TypeError("shape: a pair of functions does not say its shape; give shape=(rows, cols)")
        matvec, rmatvec = op
        sizes = tuple(shape)
    else:
        sizes = tuple(op.shape)
        if shape is not None and tuple(shape) != sizes:
            raise ValueError(f"shape: {tuple(shape)} was given, and op has {sizes}")
        matvec, rmatvec = op.matvec, op.rmatvec
    if len(sizes) != 2 or not all(int(s) == s and s > 0 for s in sizes):
        raise ValueError(f"shape: expected two positive whole numbers, got {sizes}")
    return matvec, rmatvec, int(sizes[0]), int(sizes[1])


def spectral_norm(
    op: Any,
    *,
    shape: tuple[int, int] | None = None,
    dtype: Any = None,
    norm: Literal["2", "inf", "token"] = "2",
    tokens: int | None = None,
    enclose: float | None = None,
    tolerance: float = 1e-5,
    max_steps: int = 300,
    delta: float = 1e-10,
    seed: int = 0,
    threads: int = 0,
) -> Norm:
    """The norm of a linear operator A, with a witness from below and an enclosure from above.

    ``op`` is an array with two axes (NumPy, PyTorch or JAX on the CPU, f32 or f64; it is not copied), a SciPy
    ``LinearOperator``, or a pair of functions ``(matvec, rmatvec)`` with ``shape=(rows, cols)``. Functions get
    a NumPy array with one axis in ``dtype`` (f64 unless the operator says f32) and return one; what they raise
    comes out unchanged. Functions in f32 round in a way that is not known: ``lower`` is rounded as they round,
    and nothing is said from above. ``rmatvec`` must be the adjoint of ``matvec``: all that is said from above rests on
    that, and it is tried at a random pair of vectors first.

    The 2-norm is found by Golub-Kahan-Lanczos iteration from a random start, in C++; small operators are formed
    and decomposed. ``enclose=1.05`` goes on until ``upper_whp <= 1.05 * lower``. ``norm="inf"`` is the largest
    absolute row sum, exact and with one product for each row; ``norm="token"`` with ``tokens=n`` is the largest
    length of a token that comes out when no token is changed by more than 1, from below.

    >>> import numpy as np, lipscope
    >>> found = lipscope.spectral_norm(np.diag([3.0, 4.0]))
    >>> round(found.lower, 9), found.status
    (4.0, 'converged')
    """
    if norm not in ("2", "inf", "token"):
        raise ValueError(f"norm: expected '2', 'inf' or 'token', got {norm!r}")
    if enclose is not None and norm != "2":
        raise ValueError(f"enclose: only the 2-norm is enclosed, and norm is {norm!r}")
    if enclose is not None and not enclose > 1:
        raise ValueError(f"enclose: expected a factor above 1, got {enclose}")
    for name, number, least in (("seed", seed, 0), ("max_steps", max_steps, 1), ("threads", threads, 0)):
        if not number >= least:
            raise ValueError(f"{name}: expected {least} or more, got {number}")
    if op is None:
        raise TypeError("op: expected an array, an operator or a pair of functions, got None")
    if (tokens is None) == (norm == "token"):
        raise ValueError("tokens: norm='token' needs their number, and no other norm has it")
    options: dict[str, Any] = {
        "norm": norm,
        "tokens": tokens or 0,
        "enclose": enclose or 0.0,
        "tolerance": tolerance,
        "max_steps": max_steps,
        "delta": delta,
        "seed": seed,
        "threads": threads,
    }
    if isinstance(op, tuple) or hasattr(op, "matvec"):
        matvec, rmatvec, rows, cols = _functions(op, shape)
        f32 = _dtype_is_f32(dtype, op)
        if f32 and enclose is not None:
            raise ValueError(f"enclose: {enclose} needs functions in float64; the rounding of float32 is not known")
        found = _core.callback_norm((matvec, rmatvec), rows, cols, f32=f32, **options)
    else:
        for name, value in (("shape", shape), ("dtype", dtype)):
            if value is not None:
                raise TypeError(f"{name}: an array says it itself; {name} is for functions")
        array = plain(op)
        found = _core.array_norm(array, **options)
        rows, cols = (int(s) for s in array.shape)
    return norm_of(found, norm, (rows, cols))

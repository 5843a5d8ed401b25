"""What is measured of a Jacobian that is known by its products: shared by lipscope.torch and .jax."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from lipscope import _core
from lipscope.errors import InputError
from lipscope.records import Record


@dataclass(frozen=True)
class LocalOptions:
    """How a local constant is measured; see lipscope.torch.local_constant."""

    enclose: float | Literal["none"] | None = None
    norm: str = "2"
    tolerance: float = 1e-5
    max_steps: int = 300
    delta: float = 1e-10
    seed: int = 0
    threads: int = 0

    def __post_init__(self) -> None:
        if self.norm not in ("2", "inf", "token"):
            raise InputError(f"norm: {self.norm!r}; expected '2', 'inf' or 'token'")
        if self.factor is not None and not (isinstance(self.factor, (int, float)) and self.factor > 1):
            raise InputError(f"enclose: {self.enclose!r}; expected a factor above 1, None or 'none'")
        if self.enclose is not None and self.norm != "2":
            raise InputError(f"enclose: {self.enclose} with norm {self.norm!r}; only the 2-norm is enclosed")
        if not self.tolerance >= 0:
            raise InputError(f"tolerance: {self.tolerance}; expected a number from 0 on")
        if self.max_steps < 1:
            raise InputError(f"max_steps: {self.max_steps}; expected at least 1")
        if self.seed < 0:
            raise InputError(f"seed: {self.seed}; expected a whole number from 0 on")
        if not 0 < self.delta < 1:
            raise InputError(f"delta: {self.delta}; expected a probability between 0 and 1")

    @property
    def factor(self) -> Any:
        """The factor that is asked for, or None."""
        return None if self.enclose == "none" else self.enclose


class Products(Protocol):
    """A Jacobian, by its products with flat arrays of its own type."""

    rows: int
    cols: int

    def apply(self, v: npt.NDArray[Any]) -> npt.NDArray[Any]: ...
    def apply_adjoint(self, u: npt.NDArray[Any]) -> npt.NDArray[Any]: ...


def jacobian_record(
    search: Products,
    witness: Products | None,
    options: LocalOptions,
    *,
    x: npt.NDArray[Any],
    out_shape: tuple[int, ...],
    dtype: str,
    why_not_f64: str | None,
    begin: float,
    likely: npt.NDArray[Any] | None = None,
    as_input: Callable[[npt.NDArray[Any]], Any] = lambda v: v,
    **fields: Any,
) -> Record:
    """The record of ‖J‖ at x, an f64 array; `dtype` is that of `search`, f32 or f64.

    `as_input` makes the direction, an array shaped like x, what the caller has in place of arrays.
    `witness` is J in f64. Without one the evidence is the search's: `lower` is rounded in f32, and
    nothing holds from above. `likely` is a flat direction that J may stretch much, if one is known.
    """
    found = _found(search, witness, options, x.shape, out_shape, dtype, likely)
    tokens, d = tokens_of(x.shape)
    lengths = np.linalg.norm(x.reshape(tokens, d), axis=1)
    details = dict(fields.pop("details", {}), evidence="f32" if witness is None else "f64")
    if why_not_f64 is not None:
        details["why_not_f64"] = why_not_f64
    upper = found["upper"]
    return Record(
        {
            "schema": 2,
            "command": "local_constant",
            "version": _core.__version__,
            "model": None,
            "model_sha256": None,
            "layer": None,
            "head": "all",
            "map": None,
            "kind": None,
            "mask": None,
            "norm": options.norm,
            "n": tokens,
            "d": d,
            "sample": 0,
            "input": {"from": "tensor", "name": None, "sha256": _sha256(x.reshape(tokens, d)), "offset": None},
            "radius_max": float(lengths.max()),
            "radius_rms": float(np.sqrt(np.mean(lengths**2))),
            "quantity": "constant",
            "lower": found["lower"],
            "lower_by": found["lower_by"],
            "lower_is": "found",
            "upper": upper,
            "upper_log10": None if not upper else float(np.log10(upper)),
            "upper_by": found["upper_by"],
            "upper_is": None if upper is None else "proved",
            "upper_whp": found["upper_whp"],
            "delta": options.delta,
            "scope": "input",
            "residual": found["residual"],
            "steps": found["steps"],
            "status": "converged" if found["converged"] else "not-converged",
            "dtype": dtype,
            "seed": options.seed,
            "seconds": time.perf_counter() - begin,
            "parameters": {
                "enclose": options.enclose,
                "tolerance": options.tolerance,
                "max_steps": options.max_steps,
                "operator": "autograd",
            },
            **fields,
            "details": details,
        },
        direction=as_input(np.asarray(found["direction"]).reshape(x.shape)),
    )


def _found(
    search: Products,
    witness: Products | None,
    options: LocalOptions,
    shape: tuple[int, ...],
    out_shape: tuple[int, ...],
    dtype: str,
    likely: npt.NDArray[Any] | None,
) -> dict[str, Any]:
    evidence = search if witness is None else witness
    functions = (evidence.apply, evidence.apply_adjoint)
    rows, cols = evidence.rows, evidence.cols
    effort: dict[str, Any] = {
        "enclose": options.factor or 0.0,
        "from_above": options.enclose != "none",
        "tolerance": options.tolerance,
        "max_steps": options.max_steps,
        "delta": options.delta,
        "seed": options.seed,
        # the threads of torch wait by spinning after each product: a second team beside them would slow down both
        "threads": options.threads or 1,
    }
    tokens = 0
    if options.norm == "token":
        tokens, out_tokens = tokens_of(shape)[0], tokens_of(out_shape)[0]
        if tokens != out_tokens:
            raise InputError(f"norm: 'token', and there are {tokens} tokens in x and {out_tokens} in f(x)")
    if options.norm == "2" and witness is not None and dtype == "f32":
        pair = (search.apply, search.apply_adjoint)
        return _core.measure_operators(pair, functions, rows, cols, likely=likely, **effort)
    in_f32 = witness is None and dtype == "f32"
    return _core.callback_norm(functions, rows, cols, f32=in_f32, norm=options.norm, tokens=tokens, **effort)


def tokens_of(shape: tuple[int, ...]) -> tuple[int, int]:
    """The number of tokens, along all axes but the last, and the numbers in each."""
    if len(shape) < 2:
        return 1, int(np.prod(shape, dtype=np.int64))
    return int(np.prod(shape[:-1], dtype=np.int64)), int(shape[-1])


def _sha256(x: npt.NDArray[Any]) -> str:
    """As for every matrix in a record: of its size and its entries row by row."""
    hash = hashlib.sha256(f"{x.shape[0]} {x.shape[1]}\n".encode())
    hash.update(np.ascontiguousarray(x, "<f8").data)
    return hash.hexdigest()

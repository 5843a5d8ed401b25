"""lipscope for JAX: the local Lipschitz constant of any function of an array."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from lipscope.errors import InputError
from lipscope.jacobian_record import LocalOptions, jacobian_record
from lipscope.records import Record, Records

__all__ = ["local_constant"]

Function = Callable[[Any], Any]

_SHORT = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64"}


def local_constant(
    f: Function,
    x: Any,
    *,
    enclose: float | Literal["none"] | None = None,
    norm: str = "2",
    batch: bool = False,
    output: int | str | None = None,
    tolerance: float = 1e-5,
    max_steps: int = 300,
    delta: float = 1e-10,
    seed: int = 0,
    threads: int = 0,
) -> Record | Records:
    """The norm of the Jacobian of f at x: how strongly f amplifies a small change of x.

    As lipscope.torch.local_constant, with products by jax.linearize and its transpose, both compiled.
    The search runs in x's precision, f32 for narrower types. What is stated comes from f64: f is
    traced again at the same x in f64, where JAX widens all that meets x. Where f narrows to f32
    inside, or cannot be traced so, the record says why (`details`), `lower` is what f says in its own
    precision, and nothing is stated from above.

    Args:
        f: A function of one array that JAX can differentiate; the parameters of a model are bound
            beforehand (functools.partial, or a lambda).
        x: A floating-point array of any shape.
        enclose: If given, a factor above 1: go on until `upper_whp` ≤ enclose · `lower`. "none" leaves out
            `upper_whp`, and the products in f64 that it takes.
        norm: "2"; "inf", the largest entry; or "token", the longest token, of x [..., tokens, d].
        batch: The first axis of x counts independent inputs. There is one record for each, of f at
            x[i:i+1], whatever else is in the batch.
        output: Which value of f is meant where it returns several: an index, a key, or an attribute.
        tolerance: On the relative residual ‖JᵀJ v − σ²v‖/σ².
        max_steps: Of each iteration.
        delta: The probability with which `upper_whp` may fail, over the random start.
        seed: Of the random start.
        threads: Of C++'s own vector work, 0 for one.

    Returns:
        A Record with `lower` ≤ ‖J‖ ≤ `upper_whp` (or None), `direction` (a unit NumPy array in f64,
        shaped like x), `residual`, `steps` and `status`; with batch=True, Records.

    Raises:
        InputError: For an x or an f that has no such number; the message names the argument.
    """
    options = LocalOptions(
        enclose=enclose,
        norm=norm,
        tolerance=tolerance,
        max_steps=max_steps,
        delta=delta,
        seed=seed,
        threads=threads,
    )
    _check_input(x)
    if not callable(f):
        raise InputError(f"f: expected a function, got {type(f).__name__}")
    if not batch:
        return _measure_at(f, x, output, options)
    if x.ndim < 2:
        raise InputError(f"x: batch=True needs at least 2 axes, and its shape is {list(x.shape)}")
    return Records([_measure_at(f, x[i : i + 1], output, options, sample=i) for i in range(len(x))])


class _Jacobian:
    """J = f'(x), acting on flattened arrays: f linearised, and the transpose of that."""

    def __init__(self, f: Function, x: Any, output: int | str | None) -> None:
        def one_array(at: Any) -> Any:
            return _checked_output(_chosen(f(at), output))

        self._x = x
        try:
            self.value, tangent = jax.linearize(one_array, x)
        except jax.errors.JAXTypeError as error:
            raise InputError(f"f: JAX cannot differentiate it (NumPy, or a branch on a value?): {error}") from error
        bad = int(jnp.sum(~jnp.isfinite(self.value)))
        if bad:
            raise InputError(f"f: {bad} of the {self.value.size} numbers of its output are not finite")
        transpose = jax.linear_transpose(tangent, x)
        self._push = jax.jit(tangent)
        self._pull = jax.jit(lambda u: transpose(u)[0])
        self.rows, self.cols = int(self.value.size), int(x.size)

    def apply(self, v: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """J v"""
        return self._array(self._push(self._like(v, self._x)), self._x)

    def apply_adjoint(self, u: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Jᵀ u"""
        return self._array(self._pull(self._like(u, self.value)), self._x)

    @staticmethod
    def _like(v: npt.NDArray[Any], like: Any) -> Any:
        # the array is C++'s, for the time of the call only
        return jax.device_put(np.array(v, like.dtype).reshape(like.shape), like.sharding)

    @staticmethod
    def _array(t: Any, x: Any) -> npt.NDArray[Any]:
        return np.asarray(t, x.dtype).reshape(-1)


def _measure_at(f: Function, x: Any, output: int | str | None, options: LocalOptions, **fields: Any) -> Record:
    begin = time.perf_counter()
    searched = x.dtype if x.dtype in (jnp.float32, jnp.float64) else jnp.dtype(jnp.float32)
    search = _Jacobian(f, x.astype(searched), output)
    with jax.enable_x64(True):
        witness, reason = (search, None) if searched == jnp.float64 else _in_f64(f, x, output)
        if options.factor is not None and witness is None:
            raise InputError(f"enclose={options.enclose}: needs f in f64, and f works in f32 only ({reason})")
        return jacobian_record(
            search,
            witness,
            options,
            x=np.asarray(x, np.float64),
            out_shape=tuple(search.value.shape),
            dtype=_SHORT[searched.name],
            why_not_f64=reason,
            begin=begin,
            model=getattr(f, "__name__", type(f).__name__),
            **fields,
        )


def _in_f64(f: Function, x: Any, output: int | str | None) -> tuple[_Jacobian | None, str | None]:
    """J in f64, or the reason why there is none."""
    wide = jnp.asarray(np.asarray(x, np.float64))
    try:
        narrow = _narrowed(jax.make_jaxpr(f)(wide).jaxpr)
        if narrow is not None:
            return None, f"f narrows to {_SHORT[narrow]} inside"
        j = _Jacobian(f, wide, output)
    except Exception as error:  # whatever f does at an input that it was not written for
        return None, f"{type(error).__name__}: {error}"
    if j.value.dtype != jnp.float64:
        return None, f"its output is {_SHORT[j.value.dtype.name]} at an f64 input"
    return j, None


def _narrowed(jaxpr: Any) -> str | None:
    """The type that an f64 value is rounded to on its way through f; None where none is."""
    for equation in jaxpr.eqns:
        if equation.primitive.name == "convert_element_type":
            before, after = equation.invars[0].aval.dtype, equation.outvars[0].aval.dtype
            if before == jnp.float64 and after.name in ("float32", "float16", "bfloat16"):
                return str(after.name)
        for value in equation.params.values():
            for inner in value if isinstance(value, (tuple, list)) else (value,):
                inner = getattr(inner, "jaxpr", inner)  # closed or open
                if hasattr(inner, "eqns"):
                    found = _narrowed(inner)
                    if found is not None:
                        return found
    return None


def _chosen(y: Any, output: int | str | None) -> Any:
    if output is None:
        return y
    try:
        return getattr(y, output) if isinstance(output, str) and hasattr(y, output) else y[output]
    except (KeyError, IndexError, TypeError):
        size = f" of {len(y)} values" if hasattr(y, "__len__") else ""
        raise InputError(f"output={output!r}: f returns a {type(y).__name__}{size}") from None


def _checked_output(y: Any) -> Any:
    if not isinstance(y, (jax.Array, np.ndarray)):
        what = type(y).__name__
        if isinstance(y, (tuple, list)):
            what += f" of {len(y)} values"
        elif hasattr(y, "keys"):
            what += f" with {', '.join(repr(k) for k in y.keys())}"
        raise InputError(
            f"f: returns a {what} and not one array; say which value is meant by output=…, for example "
            "output=0, or measure a function that returns it"
        )
    if jnp.issubdtype(y.dtype, jnp.complexfloating):
        raise InputError(f"f: returns {y.dtype}; only real functions have a constant here")
    if not jnp.issubdtype(y.dtype, jnp.floating):
        raise InputError(f"f: returns {y.dtype} values, which have no derivative")
    if y.size == 0:
        raise InputError(f"f: returns an empty array of shape {list(y.shape)}")
    return y


def _check_input(x: Any) -> None:
    if not isinstance(x, jax.Array):
        raise InputError(f"x: expected a JAX array, got {type(x).__name__}")
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        raise InputError(f"x: {x.dtype}; only real functions have a constant here")
    if not jnp.issubdtype(x.dtype, jnp.floating):
        raise InputError(f"x: {x.dtype} has no derivative; expected f16, bf16, f32 or f64")
    if x.size == 0:
        raise InputError(f"x: shape {list(x.shape)} holds no number")
    bad = int(jnp.sum(~jnp.isfinite(x)))
    if bad:
        raise InputError(f"x: {bad} of its {x.size} numbers are not finite")

"""The local Lipschitz constant of any torch function: local_constant."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import Any, Literal

import torch

from lipscope.errors import InputError
from lipscope.jacobian_record import LocalOptions, jacobian_record
from lipscope.records import Record, Records
from lipscope.torch.jacobian import Jacobian, shape_of
from lipscope.torch.plain_kernels import plain_kernels
from lipscope.torch.widened import CannotWiden, short_name, widened

Function = Callable[[torch.Tensor], Any]


def local_constant(
    f: Function,
    x: torch.Tensor,
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

    f is a torch.nn.Module or any function of one tensor that torch can differentiate; x is where.
    Neither is changed. The products J v and Jᵀu are torch's own, on x's device; the iteration is
    the same Golub–Kahan in C++ as everywhere in lipscope. Up to 512 unknowns J is formed.

    The search runs in x's own precision. What is stated comes from f64: f runs once more at the same
    x with everything in it widened to f64. Where f cannot be widened, the record says so (`dtype`,
    `details`), `lower` is what f says in its own precision, and nothing is stated from above.

    Args:
        f: The function; a module must be in evaluation mode where the mode matters (dropout).
        x: A floating-point tensor of any shape.
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
        threads: Of C++'s own vector work, 0 for one; torch has its own setting.

    Returns:
        A Record with `lower` ≤ ‖J‖ ≤ `upper_whp` (or None), `direction` (a unit tensor in f64, shaped like
        x, on its device), `residual`, `steps` and `status`; with batch=True, Records.

    Raises:
        InputError: For an x or an f that has no such number; the message names the argument.
        RunError: Where the numbers are not finite, or f cannot be differentiated twice.
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
    check_input(x, "x")
    check_module(f, x)
    chosen = _choose(f, output)
    module: Any = f if isinstance(f, torch.nn.Module) else None
    fields: dict[str, Any] = {"model": _name_of(f), "model_sha256": None if module is None else sha256_of(module)}
    if not batch:
        return measure_at(chosen, x, options, **fields)
    if x.dim() < 2:
        raise InputError(f"x: batch=True needs at least 2 axes, and its shape is {shape_of(x)}")
    return Records([measure_at(chosen, x[i : i + 1], options, sample=i, **fields) for i in range(len(x))])


def measure_at(
    f: Function,
    x: torch.Tensor,
    options: LocalOptions,
    *,
    own: torch.dtype | None = None,
    witness: Function | None = None,
    **fields: Any,
) -> Record:
    """The record of f at x.

    `own` is f's own precision, by default x's; `witness` is f in f64 where widening f itself is not
    enough.
    """
    begin = time.perf_counter()
    own = own or x.dtype
    searched = torch.float64 if own == torch.float64 else torch.float32
    if own == torch.float32:
        in_search = f
    elif own == torch.float64:  # f may round to f32 inside, as many norms and softmaxes do
        in_search = widened(witness or f, searched)
    else:
        in_search = widened(f, searched)
    at = x.to(searched)
    reason = None  # why nothing can be said in f64
    devices = [x.device] if x.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        search = Jacobian(in_search, at)
        j64 = search if searched == torch.float64 else None
        if j64 is None:
            try:
                j64 = _in_f64(witness or f, x)
            except Exception as error:  # whatever f does at an input that it was not written for
                reason = f"{type(error).__name__}: {error}"
        # the run in f64 is a second run of f: mostly it shows that f is the same each time
        if j64 is None or j64 is search or _difference(search.value, j64.value) is not None:
            check_same(in_search, at, search.value)
    pulled = search.require_adjoint(options.seed)

    if options.factor is not None and j64 is None:
        raise InputError(
            f"enclose={options.enclose}: needs f in f64, and f works in {short_name(own)} only "
            f"({reason})"
        )
    return jacobian_record(
        search,
        j64,
        options,
        out_shape=tuple(search.value.shape),
        dtype=short_name(searched),
        why_not_f64=reason,
        x=x.detach().double().cpu().numpy(),
        as_input=lambda v: torch.from_numpy(v).to(x.device),
        likely=pulled,
        begin=begin,
        **fields,
    )


def _in_f64(f: Function, x: torch.Tensor) -> Jacobian:
    device = torch.device("cpu") if x.device.type == "mps" else x.device  # Apple's has no f64

    def wide(at: torch.Tensor) -> Any:
        y = widened(f, torch.float64)(at)
        if isinstance(y, torch.Tensor) and y.dtype != torch.float64:
            raise CannotWiden(f"its output is {short_name(y.dtype)} at an f64 input")
        return y

    return Jacobian(wide, x.detach().to(device, torch.float64))


def _choose(f: Function, output: int | str | None) -> Function:
    if output is None:
        return f

    def chosen(x: torch.Tensor) -> Any:
        y = f(x)
        try:
            return getattr(y, output) if isinstance(output, str) and hasattr(y, output) else y[output]
        except (KeyError, IndexError, TypeError):
            size = f" of {len(y)} values" if hasattr(y, "__len__") else ""
            raise InputError(f"output={output!r}: f returns a {type(y).__name__}{size}") from None

    return chosen


def _name_of(f: Function) -> str:
    if isinstance(f, torch.nn.Module):
        return type(f).__name__
    return str(getattr(f, "__name__", type(f).__name__))


def sha256_of(module: torch.nn.Module) -> str:
    """Of the names, types, shapes and numbers of all parameters and buffers."""
    content = hashlib.sha256()
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        content.update(f"{name} {short_name(tensor.dtype)} {shape_of(tensor)}\n".encode())
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        content.update(flat.view(torch.uint8).numpy().data if flat.numel() else b"")
    return content.hexdigest()


def check_input(x: Any, name: str) -> None:
    """InputError unless x is a tensor of real, finite floating-point numbers."""
    if not isinstance(x, torch.Tensor):
        raise InputError(f"{name}: expected a torch tensor, got {type(x).__name__}")
    if x.is_complex():
        raise InputError(f"{name}: {x.dtype}; only real functions have a constant here")
    if not x.is_floating_point():
        raise InputError(
            f"{name}: {short_name(x.dtype)} has no derivative; expected f16, bf16, f32 or f64 (of token "
            "ids, measure from the embeddings on)"
        )
    if x.numel() == 0:
        raise InputError(f"{name}: shape {shape_of(x)} holds no number")
    if x.device.type == "meta":
        raise InputError(f"{name}: is on meta, where tensors have no numbers")
    if x.layout != torch.strided:
        raise InputError(f"{name}: layout {x.layout}; expected a dense tensor")
    bad = int((~torch.isfinite(x.detach())).sum())
    if bad:
        raise InputError(f"{name}: {bad} of its {x.numel()} numbers are not finite")


def check_module(f: Any, x: torch.Tensor) -> None:
    """InputError where f is a module that would not be the same function each time, or not fit x."""
    if not isinstance(f, torch.nn.Module):
        if not callable(f):
            raise InputError(f"f: expected a function or a module, got {type(f).__name__}")
        return
    check_evaluation(f, "f")
    for name, p in f.named_parameters():
        if p.is_floating_point() and p.dtype != x.dtype:
            raise InputError(f"x: is {short_name(x.dtype)}, and f.{name} is {short_name(p.dtype)}")
        if p.device != x.device:
            raise InputError(f"x: is on {x.device}, and f.{name} is on {p.device}")


def check_evaluation(module: torch.nn.Module, name: str) -> None:
    """InputError where a part of the module is in training mode and behaves differently there."""
    for path, part in module.named_modules():
        where = f"{name}.{path}" if path else name
        kind = type(part).__name__
        if not part.training:
            continue
        p = getattr(part, "p", None)
        if isinstance(part, torch.nn.modules.dropout._DropoutNd) and isinstance(p, float) and p > 0:
            raise InputError(f"{where}: {kind} with p={p} is in training mode; call {name}.eval() first")
        if isinstance(part, torch.nn.modules.batchnorm._NormBase) and part.track_running_stats:
            raise InputError(
                f"{where}: {kind} is in training mode, and measuring would change its running "
                f"statistics; call {name}.eval() first"
            )


def check_same(f: Function, x: torch.Tensor, first: torch.Tensor) -> None:
    """InputError where f(x) is not `first`, which it was before, as with dropout left on."""
    with torch.no_grad(), plain_kernels():
        second = f(x.detach().clone())
    difference = _difference(first, second)
    if difference is not None:
        raise InputError(f"f: {difference}")


def _difference(first: torch.Tensor, second: torch.Tensor) -> str | None:
    """How two values of f at the same x differ, or None where they are the same.

    Two runs may round differently on some devices: differences up to the root of the precision of
    the first one's type do not count.
    """
    if first.shape != second.shape:
        return f"shapes {shape_of(first)} and {shape_of(second)} for the same x"
    size = float(first.abs().max())
    difference = float((first - second.to(first.device, first.dtype)).abs().max())
    if difference <= torch.finfo(first.dtype).eps ** 0.5 * size:
        return None
    return (
        f"two runs at the same x differ by {difference:.3g}, at outputs up to {size:.3g}: f draws "
        "random numbers (dropout left on?); call eval() on its modules first"
    )

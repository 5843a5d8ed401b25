"""A promised constant, kept while a model learns."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from lipscope.errors import InputError, RunError
from lipscope.records import Record
from lipscope.torch.arithmetic import Proved
from lipscope.torch.bound import Inputs, Part, constant_of, inputs, record_of
from lipscope.torch.capped import CappedLinear
from lipscope.torch.self_attention import ContractiveL2SelfAttention, SelfAttention


class Promise:
    """Keeps the proved Lipschitz constant of a model at or below a promised one, whatever an optimiser does.

    Call it after each step, or hand it to ``optimizer.register_step_post_hook``. The weights are brought within the
    promise when it is made. It depends on the weights alone: on all processes of distributed training it does the same.

    >>> import torch, lipscope.torch as lt
    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    >>> promise = lt.Promise(model, 2.0)
    >>> lt.proved_bound(model).upper <= 2.0
    True
    """

    def __init__(
        self,
        model: nn.Module,
        constant: float,
        n: int | None = None,
        norm: str = "2",
        radius: float | None = None,
        *,
        mask: str = "any",
    ) -> None:
        self.model, self.constant = model, constant
        self._over: dict[str, Any] = {"n": n, "norm": norm, "radius": radius, "mask": mask}
        self.proof = keep_promise(model, constant, **self._over)

    def __call__(self, *_: Any) -> None:
        """Brings the weights back within the promise; ``proof`` is then the record that says so."""
        self.proof = keep_promise(self.model, self.constant, **self._over)


@torch.no_grad()
def keep_promise(
    model: nn.Module,
    constant: float,
    n: int | None = None,
    norm: str = "2",
    radius: float | None = None,
    *,
    mask: str = "any",
) -> Record:
    """Scales weights so that the proved bound is at most ``constant``, and returns the proof.

    Where it is above, the constants of the modules are cut to one level, the largest that keeps the promise: modules
    below that level keep their weights, those above it are scaled: of Linear and norm layers the weight, of attention
    that of its output. See :func:`lipschitz_bound` for the other arguments.

    Raises:
        InputError: Where no weights keep the promise, as of a residual connection below 1.
    """
    if not 0.0 < float(constant) < math.inf:
        raise InputError(f"constant: {constant}; expected a number above 0")
    begin = time.perf_counter()
    for attempt in range(8):
        over = inputs(Proved(), n, norm, radius, mask)
        found = constant_of(model, over)
        total = over.arithmetic.number(found.value)
        if total.value <= constant:
            return record_of(model, over, replace(found, value=total), begin)
        level = _level(model, over, constant)
        # two parts may be one module
        factors: dict[nn.Module, float] = {}
        for part in over.parts:
            if _weight(part.module) is None:
                continue
            excess = over.arithmetic.number(part.constant.value).log10 - level
            if excess > 0.0:
                factors[part.module] = min(10.0**-excess, factors.get(part.module, 1.0))
        for module, factor in factors.items():
            weight = _weight(module)
            assert weight is not None
            room = 64.0 * 4.0**attempt * torch.finfo(weight.dtype).eps
            if isinstance(module, CappedLinear):
                weight.copy_(module.capped_weight())
            weight.mul_(factor * (1.0 - room))
    raise RunError(f"constant: {constant} was not reached by scaling; the bound is {total.value:.9g}")


def _level(model: nn.Module, over: Inputs, constant: float) -> float:
    """The largest log10 to which constants of modules can be cut that keeps the promise."""
    a = over.arithmetic
    shrinkable = [part for part in over.parts if _weight(part.module) is not None]

    def kept(level: float) -> bool:
        cut = {part.path: replace(part.constant, value=_cut(part, level)) for part in shrinkable}
        total = a.number(constant_of(model, replace(over, parts=[], known=cut)).value)
        return bool(total.value <= constant)

    def _cut(part: Part, level: float) -> Any:
        return a.smaller(part.constant.value, 10.0**level)

    low, high = -30.0, 300.0
    if not kept(low):
        fixed = ", ".join(f"{p.path or 'model'} ({type(p.module).__name__})" for p in over.parts if p not in shrinkable)
        raise InputError(
            f"constant: {constant} is below what is left when all weights that can be scaled are zero"
            + (f"; {fixed} cannot be scaled" if fixed else "")
        )
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if kept(middle) else (low, middle)
    return low


def _weight(module: nn.Module) -> torch.Tensor | None:
    """The weight that a module's constant is proportional to; None where there is none."""
    found: Any = None
    if isinstance(module, SelfAttention) and not isinstance(module, ContractiveL2SelfAttention):
        found = module.out_proj_weight
    elif isinstance(module, nn.MultiheadAttention):
        found = module.out_proj.weight
    elif isinstance(module, (nn.Linear, nn.LayerNorm, CappedLinear)) or type(module).__name__ == "RMSNorm":
        found = module.weight
    return found if isinstance(found, torch.Tensor) else None

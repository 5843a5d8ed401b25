"""The maps core, attn, residual, block and model of a layer as it ran, as functions of one tensor."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from lipscope.errors import InputError
from lipscope.torch.layers import (
    Call,
    Forward,
    Found,
    LayerRun,
    call_of,
    first_tensor,
    is_linear,
    is_norm,
    wrapped,
)

Map = Callable[[torch.Tensor], torch.Tensor]


def block_map(run: LayerRun) -> Map:
    """Input → output of the whole layer."""
    return lambda x: first_tensor(run.block.run(x))


# ---- attn and core


def attention_map(
    run: LayerRun,
    projection: nn.Module | None,
    head: int | None,
    num_heads: int | None,
    *,
    core: bool = False,
) -> Map:
    """Input of the attention module → after its output projection; with `core`, before it.

    Of one head: the others are set to 0 where the heads stand side by side, ahead of the output
    projection. What comes out is the head's own part, and a bias that no derivative sees.
    """
    attention = run.attention
    if isinstance(attention.module, nn.MultiheadAttention):
        if core:
            raise InputError("maps: MultiheadAttention does not show its heads; core cannot be measured")
        return _torch_attention(attention, head)
    if projection is None:
        if head is not None or core:
            raise InputError(
                f"heads: {type(attention.module).__name__} has no output projection that could be seen, so "
                'that its heads cannot be told apart; only attn with heads="all" can be measured'
            )
        return lambda x: first_tensor(attention.run(x))

    def end_here(forward: Forward) -> Forward:
        def ending(heads: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            if head is not None:
                assert num_heads is not None
                heads = _only(heads, head, num_heads)
            if core:
                raise Found(_columns(heads, head, num_heads) if head is not None else heads)
            raise Found(forward(heads, *args, **kwargs))

        return ending

    wraps = [(projection, end_here)]
    return lambda x: _run_until_found(attention, x, wraps)


def _only(heads: torch.Tensor, head: int, num_heads: int) -> torch.Tensor:
    width = heads.shape[-1] // num_heads
    keep = torch.zeros(heads.shape[-1], dtype=heads.dtype, device=heads.device)
    keep[head * width : (head + 1) * width] = 1
    return heads * keep


def _columns(heads: torch.Tensor, head: int, num_heads: int | None) -> torch.Tensor:
    assert num_heads is not None
    width = heads.shape[-1] // num_heads
    return heads[..., head * width : (head + 1) * width]


def _run_until_found(
    call: Call, x: torch.Tensor, wraps: Sequence[tuple[nn.Module, Callable[[Forward], Forward]]]
) -> torch.Tensor:
    with contextlib.ExitStack() as stack:
        for module, wrap in wraps:
            stack.enter_context(wrapped(module, wrap))
        try:
            call.run(x)
        except Found as found:
            return found.value
    raise InputError(f"model: a {type(call.module).__name__} ran differently the second time")


def output_projection(attention: Call) -> nn.Module | None:
    """The module of the last matrix that the attention multiplies by; None where none is seen."""
    last: list[nn.Module] = []

    def watch(module: nn.Module) -> Callable[[Forward], Forward]:
        def wrap(forward: Forward) -> Forward:
            def watched(*args: Any, **kwargs: Any) -> Any:
                last[:] = [module]
                return forward(*args, **kwargs)

            return watched

        return wrap

    with contextlib.ExitStack() as stack, torch.no_grad():
        for module in attention.module.modules():
            if is_linear(module):
                stack.enter_context(wrapped(module, watch(module)))
        attention.run(attention.hidden)
    return last[0] if last else None


def _torch_attention(attention: Call, head: int | None) -> Map:
    # its output projection is no call of a module: the weights of the other heads are set to 0
    assert isinstance(attention.module, nn.MultiheadAttention)
    if head is None:
        return lambda x: first_tensor(attention.run(x))
    projection, kept, num_heads = attention.module.out_proj, head, attention.module.num_heads

    def one_head(x: torch.Tensor) -> torch.Tensor:
        whole = projection.weight
        with torch.no_grad():
            part = nn.Parameter(_only(whole.detach(), kept, num_heads), requires_grad=False)
        projection.weight = part
        try:
            return first_tensor(attention.run(x))
        finally:
            projection.weight = whole

    return one_head


def number_of_heads(attention: nn.Module, config: Any) -> int | None:
    """As the module, a part of it, or the model's configuration says; None where none does."""
    names = ("num_heads", "num_attention_heads", "n_heads", "n_head", "nhead", "heads")
    for owner in [*attention.modules(), config]:
        for name in names:
            value = getattr(owner, name, None)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return None


# ---- residual


class _FirstSum(TorchFunctionMode):
    """Shows the first sum of x with something else, once `ready`."""

    def __init__(self, x: torch.Tensor, ready: Callable[[], bool], take: Callable[[torch.Tensor], None]):
        begin: Any = super().__init__  # without types in older releases
        begin()
        self._x, self._ready, self._take, self._done = x, ready, take, False

    def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        result = func(*args, **(kwargs or {}))
        if self._done or getattr(func, "__name__", "") not in ("add", "add_", "__add__", "__radd__", "__iadd__"):
            return result
        if self._ready() and any(a is self._x for a in args[:2]) and isinstance(result, torch.Tensor):
            self._done = True
            self._take(result)
        return result


class _Residual:
    """One run of a layer up to the output of its attention sub-layer.

    With x the layer's input, the sub-layer's output is the first sum s of x and something else once
    the attention has begun: x + attn(norm x). Where the attention reads x itself and s goes into a
    norm next, the layer is post-norm and the output is norm(s).
    """

    def __init__(self, run: LayerRun, x: torch.Tensor) -> None:
        self._run, self._x = run, x
        self._began = self._reads_x = False
        self._sum: torch.Tensor | None = None
        self._inside = set(run.attention.module.modules())
        self._early: str | None = None

    def value(self) -> torch.Tensor:
        block, x = self._run.block, self._x
        with contextlib.ExitStack() as stack:
            attention = self._run.attention.module
            for name, module in block.module.named_modules():
                if module is attention:
                    stack.enter_context(wrapped(module, self._begin))
                elif is_norm(module):
                    stack.enter_context(wrapped(module, self._norm))
                elif is_linear(module):
                    stack.enter_context(wrapped(module, self._linear(name, module)))
            stack.enter_context(_FirstSum(x, lambda: self._began, self._take))
            try:
                block.run(x)
            except Found as found:
                return found.value
        if self._sum is None:
            raise InputError(
                f"maps: no sum of a layer's input with its attention was seen in {type(block.module).__name__}: "
                "residual cannot be measured"
            )
        return self._sum

    def _begin(self, forward: Forward) -> Forward:
        def begun(*args: Any, **kwargs: Any) -> Any:
            self._began = True
            self._reads_x = any(a is self._x for a in [*args, *kwargs.values()])
            return forward(*args, **kwargs)

        return begun

    def _take(self, value: torch.Tensor) -> None:
        if self._early is not None:
            raise InputError(
                f"maps: {type(self._run.block.module).__name__} runs {self._early} beside its attention, before "
                "the sum with its input: it has no attention sub-layer, and residual cannot be measured"
            )
        self._sum = value
        if not self._reads_x:
            raise Found(value)

    def _norm(self, forward: Forward) -> Forward:
        def normed(*args: Any, **kwargs: Any) -> Any:
            result = forward(*args, **kwargs)
            if self._sum is not None:
                follows = any(a is self._sum for a in [*args, *kwargs.values()])
                raise Found(first_tensor(result) if follows else self._sum)
            return result

        return normed

    def _linear(self, name: str, module: nn.Module) -> Callable[[Forward], Forward]:
        def wrap(forward: Forward) -> Forward:
            def watched(*args: Any, **kwargs: Any) -> Any:
                if self._sum is not None:
                    raise Found(self._sum)
                if module not in self._inside:
                    self._early = self._early or name
                return forward(*args, **kwargs)

            return watched

        return wrap


def residual_map(run: LayerRun) -> Map:
    """Input of the attention sub-layer → its output as the model runs it."""
    return lambda x: _Residual(run, x).value()


# ---- model


def model_map(model: nn.Module, runs: Sequence[LayerRun], call: Callable[[], Any]) -> Map:
    """Input of the first layer → output of the last one, after the norm that follows it."""

    def at(x: torch.Tensor) -> torch.Tensor:
        count = 0
        last: list[torch.Tensor] = []
        in_layers = {m for r in runs for m in r.layer.block.modules()}

        def layer(block: nn.Module) -> Callable[[Forward], Forward]:
            def wrap(forward: Forward) -> Forward:
                def watched(*args: Any, **kwargs: Any) -> Any:
                    nonlocal count
                    count += 1
                    if count == 1:
                        args, kwargs = call_of(block, args, kwargs).at(x)
                    result = forward(*args, **kwargs)
                    if count == len(runs):
                        last[:] = [first_tensor(result)]
                    return result

                return watched

            return wrap

        def after(is_final_norm: bool) -> Callable[[Forward], Forward]:
            def wrap(forward: Forward) -> Forward:
                def watched(*args: Any, **kwargs: Any) -> Any:
                    if not last:
                        return forward(*args, **kwargs)
                    follows = any(a is last[0] for a in [*args, *kwargs.values()])
                    raise Found(first_tensor(forward(*args, **kwargs)) if follows and is_final_norm else last[0])

                return watched

            return wrap

        with contextlib.ExitStack() as stack:
            for block in {id(r.layer.block): r.layer.block for r in runs}.values():
                stack.enter_context(wrapped(block, layer(block)))
            for module in model.modules():
                if module not in in_layers and (is_norm(module) or is_linear(module)):
                    stack.enter_context(wrapped(module, after(is_norm(module))))
            try:
                call()
            except Found as found:
                return found.value
        if not last:
            raise InputError(f"model: {count} of {len(runs)} layers ran the second time")
        return last[0]

    return at

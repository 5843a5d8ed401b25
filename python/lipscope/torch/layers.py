"""The layers of a transformer, whatever its class: found by their names, seen as they run.

Nothing is copied and nothing is changed: where a value is read or replaced on its way, the `forward`
of a module is wrapped for the time of one run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from lipscope.errors import InputError
from lipscope.torch.self_attention import SelfAttention

Forward = Callable[..., Any]


class Found(Exception):
    """Ends a run that has come to the value it was made for."""

    def __init__(self, value: torch.Tensor) -> None:
        super().__init__()
        self.value = value


@contextlib.contextmanager
def wrapped(module: nn.Module, wrap: Callable[[Forward], Forward]) -> Iterator[None]:
    """Inside, module.forward is wrap(module.forward)."""
    own = module.__dict__.get("forward")  # set by somebody else on this one module
    module.forward = wrap(module.forward)
    try:
        yield
    finally:
        if own is None:
            del module.forward
        else:
            module.forward = own


@dataclass(frozen=True)
class Call:
    """One call of a module, with the hidden states among its arguments."""

    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    hidden: torch.Tensor

    def at(self, x: torch.Tensor) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with x for the hidden states, wherever these stand (query, key and value)."""
        args = tuple(x if a is self.hidden else a for a in self.args)
        return args, {k: x if a is self.hidden else a for k, a in self.kwargs.items()}

    def run(self, x: torch.Tensor) -> Any:
        args, kwargs = self.at(x)
        return self.module(*args, **kwargs)


def call_of(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    """The hidden states are the first floating-point tensor of at least two axes."""
    for value in [kwargs.get("hidden_states"), *args, *kwargs.values()]:
        if isinstance(value, torch.Tensor) and value.is_floating_point() and value.dim() >= 2:
            return Call(module, args, dict(kwargs), value)
    raise InputError(f"model: a {type(module).__name__} is called without hidden states")


def first_tensor(value: Any) -> torch.Tensor:
    """A tensor, or the first one of what a layer returns beside it."""
    if isinstance(value, torch.Tensor):
        return value
    values = value.values() if hasattr(value, "values") else value
    for part in values if isinstance(values, Sequence) or hasattr(value, "values") else ():
        if isinstance(part, torch.Tensor):
            return part
    raise InputError(f"model: a layer returns a {type(value).__name__} without a tensor")


@dataclass(frozen=True)
class Layer:
    """A layer of the model: the module around an attention module, and the names of both."""

    name: str
    block: nn.Module
    attention_name: str
    attention: nn.Module


@dataclass(frozen=True)
class LayerRun:
    """A layer as it ran: what it and its attention were called with."""

    layer: Layer
    block: Call
    attention: Call


def is_norm(module: nn.Module) -> bool:
    named = "norm" in type(module).__name__.lower()
    return named and not any(is_linear(part) for part in module.modules())


def is_linear(module: nn.Module) -> bool:
    """A leaf that multiplies by a matrix: Linear, transformers' Conv1D, and the like."""
    weight = getattr(module, "weight", None)
    return (
        not list(module.children())
        and isinstance(weight, torch.Tensor)
        and weight.dim() == 2
        and not isinstance(module, nn.Embedding)
        and "norm" not in type(module).__name__.lower()  # a LayerNorm over two axes
    )


def find_layers(model: nn.Module, attention: type[nn.Module] | None = None) -> list[Layer]:
    """The layers that have attention in them.

    An attention module is a torch.nn.MultiheadAttention or, outermost first, has a class whose name
    contains "Attention"; or it is of the class that is given. Its layer is the nearest module around
    it that stands in a list of modules of one class; a list of different ones (T5's self-attention,
    cross-attention and MLP) is the inside of a layer. Where there is no such list, it is the module
    that holds the attention.
    """
    modules = dict(model.named_modules())
    found: list[Layer] = []
    taken: set[nn.Module] = set()
    for name, module in modules.items():
        if not _is_attention(module, attention) or any(_inside(name, f.attention_name) for f in found):
            continue
        block_name = _layer_around(name, modules)
        block = modules[block_name]
        # the second attention of a layer is cross-attention: part of the layer, no layer of its own
        if block not in taken:
            found.append(Layer(block_name, block, name, module))
            taken.add(block)
    if not found:
        wanted = "named …Attention" if attention is None else attention.__name__
        raise InputError(
            f"model: none of the {len(modules)} modules of this {type(model).__name__} is {wanted}; say "
            "attention=CLASS, the class of the attention modules"
        )
    return found


def _is_attention(module: nn.Module, attention: type[nn.Module] | None) -> bool:
    if attention is not None:
        return isinstance(module, attention)
    if isinstance(module, (nn.ModuleList, nn.Sequential)) or not list(module.parameters()):
        return False
    return isinstance(module, nn.MultiheadAttention) or "attention" in type(module).__name__.lower() and any(
        is_linear(part) or isinstance(part, SelfAttention) for part in module.modules()
    ) and not any(isinstance(part, nn.ModuleList) for part in module.modules())


def _inside(name: str, outer: str) -> bool:
    return name.startswith(outer + ".") or outer == ""


def _layer_around(name: str, modules: dict[str, nn.Module]) -> str:
    nearest = None
    path = name
    while path:
        parent, _, _ = path.rpartition(".")
        siblings = modules[parent]
        if isinstance(siblings, (nn.ModuleList, nn.Sequential)):
            nearest = nearest or path
            if len({type(s) for s in siblings}) == 1:
                return path
        path = parent
    if nearest is not None:
        return nearest
    return name.rpartition(".")[0]


def runs_of(layers: Sequence[Layer], run: Callable[[], Any]) -> list[LayerRun]:
    """The layers in the order in which `run` calls them; one that is called twice stands twice."""
    runs: list[LayerRun] = []
    current: list[tuple[Layer, Call]] = []
    seen: dict[int, Call] = {}

    def watch_block(layer: Layer) -> Callable[[Forward], Forward]:
        def wrap(forward: Forward) -> Forward:
            def watched(*args: Any, **kwargs: Any) -> Any:
                call = call_of(layer.block, args, kwargs)
                current.append((layer, call))
                seen.pop(id(layer), None)
                result = forward(*args, **kwargs)
                current.pop()
                if id(layer) in seen:
                    runs.append(LayerRun(layer, call, seen[id(layer)]))
                return result

            return watched

        return wrap

    def watch_attention(layer: Layer) -> Callable[[Forward], Forward]:
        def wrap(forward: Forward) -> Forward:
            def watched(*args: Any, **kwargs: Any) -> Any:
                seen.setdefault(id(layer), call_of(layer.attention, args, kwargs))
                return forward(*args, **kwargs)

            return watched

        return wrap

    with contextlib.ExitStack() as stack:
        for layer in layers:
            if layer.block is layer.attention:
                stack.enter_context(wrapped(layer.block, watch_attention(layer)))
            else:
                stack.enter_context(wrapped(layer.attention, watch_attention(layer)))
            stack.enter_context(wrapped(layer.block, watch_block(layer)))
        run()
    if not runs:
        raise InputError(f"model: ran without calling any of its {len(layers)} attention layers")
    return runs

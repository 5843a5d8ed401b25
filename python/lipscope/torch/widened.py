"""The same function in a wider floating-point type, whatever it is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_BITS = {torch.bfloat16: 16, torch.float16: 16, torch.float32: 32, torch.float64: 64}

# t.float(), t.half(), …: the type is in the name
_CASTS = {
    torch.Tensor.half,
    torch.Tensor.bfloat16,
    torch.Tensor.float,
}


class CannotWiden(RuntimeError):
    """The function does something that cannot be done in a wider type."""


class Widened(TorchFunctionMode):
    """Inside, every call of torch is computed in `dtype` where it would be in a narrower one.

    A tensor that is narrower becomes wider before the call: so a module or a closure keeps its f32
    weights, and they are exact in f64. Where a call names a narrower type (Hugging Face's models ask
    for f32 in norms, rotary positions and softmax), it gets the wider one. What is made in a
    narrower type (torch.zeros) is made wider at once.

    A narrower tensor that was there before must not be written into: the value would be lost with
    the copy. CannotWiden says so.
    """

    def __init__(self, dtype: torch.dtype) -> None:
        begin: Any = super().__init__  # without types in older releases
        begin()
        self.dtype = dtype

    def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name == "__get__" or name == "__set__":  # an attribute of a tensor, such as its dtype
            is_change = name == "__set__"
        else:
            is_change = name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))
        changed = [args[0]] if is_change and args else []
        for target in [*changed, kwargs.get("out")]:
            if isinstance(target, torch.Tensor) and self._is_narrow(target.dtype):
                raise CannotWiden(
                    f"{name} writes into a {short_name(target.dtype)} tensor that was made outside"
                )
        if func in _CASTS:
            return self._wide(args[0]).to(self.dtype, **kwargs)
        result = func(*self._map(args), **self._map(kwargs))
        return self._map(result) if isinstance(result, (torch.Tensor, tuple, list)) else result

    def _is_narrow(self, dtype: torch.dtype) -> bool:
        return _BITS.get(dtype, 64) < _BITS[self.dtype]

    def _wide(self, tensor: torch.Tensor) -> torch.Tensor:
        if not self._is_narrow(tensor.dtype):
            return tensor
        # weights are constants here: only the input is differentiated
        source = tensor.detach() if tensor.is_leaf else tensor
        return source.to(self.dtype)

    def _map(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._wide(value)
        if isinstance(value, torch.dtype):
            return self.dtype if self._is_narrow(value) else value
        if type(value) in (tuple, list):
            return type(value)(self._map(v) for v in value)
        if type(value) is dict:
            return {k: self._map(v) for k, v in value.items()}
        return value


def widened(f: Callable[..., Any], dtype: torch.dtype) -> Callable[..., Any]:
    """f with every call of torch inside it in `dtype` or wider."""

    def wide(*args: Any, **kwargs: Any) -> Any:
        with Widened(dtype):
            return f(*args, **kwargs)

    return wide


def short_name(dtype: torch.dtype) -> str:
    """ "f32" for torch.float32; torch's own word for what is no floating-point type."""
    names = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64"}
    return names.get(dtype, str(dtype).replace("torch.", ""))

"""Attention and recurrent layers by kernels that can be differentiated twice."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class _NoFastPath(TorchFunctionMode):
    """Changes nothing. torch's transformer layers leave their fused path where a mode is active."""

    def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def plain_kernels() -> Iterator[None]:
    """Inside, torch chooses no fused kernel whose second derivative is missing.

    These are: fused scaled-dot-product attention, the fast path of MultiheadAttention and of
    TransformerEncoder, and cuDNN's recurrent layers. What they compute is the same up to rounding.
    Releases of torch before 2.3 name the switches otherwise; 1.13 has no fused attention that is
    taken where a gradient is asked for.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.backends.cudnn.flags(enabled=False))
        mode: Any = _NoFastPath  # without types in older releases
        stack.enter_context(mode())
        if hasattr(torch.nn, "attention"):
            from torch.nn.attention import SDPBackend, sdpa_kernel

            stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        elif hasattr(torch.nn.functional, "scaled_dot_product_attention"):
            only_math = {"enable_flash": False, "enable_math": True, "enable_mem_efficient": False}
            stack.enter_context(torch.backends.cuda.sdp_kernel(**only_math))
        if hasattr(torch.backends, "mha"):
            before = torch.backends.mha.get_fastpath_enabled()
            torch.backends.mha.set_fastpath_enabled(False)
            stack.callback(torch.backends.mha.set_fastpath_enabled, before)
        yield

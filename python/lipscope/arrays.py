"""Arrays as they come from users."""

from __future__ import annotations

from typing import Any

__all__ = ["plain"]


def plain(array: Any) -> Any:
    """The array without what autograd knows of it: a torch tensor that requires a gradient is detached."""
    if getattr(array, "requires_grad", False):
        return array.detach()
    return array

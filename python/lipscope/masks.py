"""Windows and padding as users say them."""

from __future__ import annotations

from typing import Any

__all__ = ["both_ends", "window_of"]


def window_of(window: Any) -> int:
    """A window: tokens see those less than this away."""
    try:
        width = int(window.__index__())
    except (AttributeError, TypeError):
        raise TypeError(f"window: expected a whole number, got {window!r}") from None
    if width < 1:
        raise ValueError(f"window: expected 1 or more, got {width}")
    return width


def both_ends(padding: Any) -> tuple[int, int]:
    """How many tokens at the beginning and at the end are padding."""
    try:
        before, after = (int(count.__index__()) for count in padding)
    except (AttributeError, TypeError, ValueError):
        raise TypeError(f"padding: expected two whole numbers, such as (0, 3), got {padding!r}") from None
    if before < 0 or after < 0:
        raise ValueError(f"padding: expected 0 or more, got {(before, after)}")
    return before, after

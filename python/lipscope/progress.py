"""How far a long run is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Union

__all__ = ["Progress", "shown"]

Told = Callable[[int, int, str, int, int], None]
Progress = Union[bool, Told, None]
"""None: a bar of tqdm if it is installed and standard error is a terminal; True or False; or a function that is
told, some times a second, how many jobs are done and of how many, what is being done, and where that is long, which
step of at most how many."""


@contextmanager
def shown(progress: Progress) -> Iterator[Told | None]:
    """The function that the core tells, or None."""
    if callable(progress):
        yield progress
        return
    if progress is False or (progress is None and not sys.stderr.isatty()):
        yield None
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        if progress:
            raise ImportError("progress=True needs tqdm: pip install tqdm") from None
        yield None
        return
    with tqdm(unit="", leave=False) as bar:

        def tell(done: int, total: int, doing: str, step: int, most: int) -> None:
            bar.total = total
            bar.n = done
            bar.set_description(doing + (f", step {step}" if step else ""), refresh=False)
            bar.refresh()

        yield tell

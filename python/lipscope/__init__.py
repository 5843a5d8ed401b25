"""lipscope: how strongly self-attention amplifies a change of its input, with evidence."""

from lipscope._core import __version__
from lipscope.errors import CheckFailed, InputError, RunError, Violation
from lipscope.operators import Norm, spectral_norm

__all__ = [
    "CheckFailed",
    "InputError",
    "Norm",
    "RunError",
    "Violation",
    "__version__",
    "spectral_norm",
]

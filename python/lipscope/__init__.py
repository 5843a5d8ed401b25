"""lipscope: how strongly self-attention amplifies a change of its input (its Lipschitz constant), with evidence.

The commands of the program, :func:`measure`, :func:`bound`, :func:`search`, :func:`meanfield`, :func:`invert`,
:func:`certify`, :func:`train` and :func:`reproduce`, give :class:`Records`; :class:`Attention` is a layer from arrays;
:func:`spectral_norm` is the norm of any linear operator. docs/python.md shows sessions.
"""

from lipscope.cpu import require_cpu

require_cpu()

from lipscope._core import __version__  # noqa: E402
from lipscope.attention import Attention  # noqa: E402
from lipscope.commands import (  # noqa: E402
    bound,
    certify,
    invert,
    meanfield,
    measure,
    reproduce,
    search,
    train,
    wasserstein,
)
from lipscope.errors import CheckFailed, InputError, MergeConflict, RunError, Violation, WorkLost  # noqa: E402
from lipscope.operators import Norm, spectral_norm  # noqa: E402
from lipscope.records import Record, Records, read  # noqa: E402

__all__ = [
    "Attention",
    "CheckFailed",
    "InputError",
    "MergeConflict",
    "Norm",
    "Record",
    "Records",
    "RunError",
    "Violation",
    "WorkLost",
    "__version__",
    "bound",
    "certify",
    "invert",
    "meanfield",
    "measure",
    "read",
    "reproduce",
    "search",
    "spectral_norm",
    "train",
    "wasserstein",
]

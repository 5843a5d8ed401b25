"""What can go wrong, in the three kinds of the library.

A caller's mistake, such as arrays whose shapes do not fit, is a plain
:class:`ValueError` (or a :class:`TypeError`). Not converging is no error: see
``status`` of a result.
"""

from lipscope._core import InputError, MergeConflict, RunError, Violation

__all__ = ["CheckFailed", "InputError", "MergeConflict", "RunError", "Violation", "WorkLost"]

InputError.__doc__ = """A file or a request is wrong. The message names the file, the place in it, and
what was expected there. It is a :class:`ValueError`."""
RunError.__doc__ = """The run could not be carried through though its input was fine: a full disk, no
memory, a number that is not finite. It is a :class:`RuntimeError`."""
MergeConflict.__doc__ = """Two workers answered one question, and both answers cannot be right. The message has both. It is a
:class:`RuntimeError`."""
Violation.__doc__ = """A number from below came out above one from above: something is wrong with
lipscope or the machine. It is a :class:`RuntimeError`."""


class CheckFailed(AssertionError):
    """A layer did not pass :meth:`lipscope.Attention.check`. The message has the reason, ``record`` the evidence."""

    def __init__(self, message: str, record: object) -> None:
        super().__init__(message)
        self.record = record


class WorkLost(RuntimeError):
    """Questions that no worker of an executor answered, by name: ``questions``. What others answered is in ``out``."""

    def __init__(self, message: str, questions: list[str]) -> None:
        super().__init__(message, questions)
        self.questions = questions

    def __str__(self) -> str:
        return str(self.args[0])


for _kind in (InputError, MergeConflict, RunError, Violation, CheckFailed, WorkLost):
    _kind.__module__ = "lipscope"

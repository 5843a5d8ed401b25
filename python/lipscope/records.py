"""What commands find: numbers with all that they need to be understood."""

from __future__ import annotations

import html
import json
import os
import shutil
import tempfile
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, overload

from lipscope import _core
from lipscope.errors import InputError

if TYPE_CHECKING:
    import matplotlib.axes
    import numpy as np
    import numpy.typing as npt
    import pandas as pd

__all__ = ["Record", "Records", "read"]

# in this order in a table, where they are not all alike or all missing
_QUESTION = ("model", "layer", "head", "map", "kind", "mask", "norm", "n", "sample", "scope")
_ANSWER = ("lower", "upper_whp", "upper", "upper_log10", "upper_by", "value", "value_of", "residual", "steps", "status")
_ROWS_SHOWN = 60
# in this order, where the terminal is narrow; to_pandas() has everything
_LEFT_OUT_FIRST = ("residual", "steps", "status", "upper_by", "scope", "sample")


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


class Record:
    """One number and all that it needs to be understood; docs/records.md explains each field.

    Fields are attributes: ``record.lower``, ``record.upper_whp``, ``record.status``. A record does not change.
    """

    __slots__ = ("_fields", "direction", "x")

    _fields: Mapping[str, Any]
    direction: npt.NDArray[np.float64] | None
    """The witness v of ``lower``, [n, d], where it was kept (``directions=True``); otherwise None."""
    x: npt.NDArray[np.float64] | None
    """The tokens, [n, d]: those at which was measured, those found by ``search`` or ``invert``; or None."""

    def __init__(
        self,
        fields: Mapping[str, Any],
        direction: npt.NDArray[np.float64] | None = None,
        x: npt.NDArray[np.float64] | None = None,
    ) -> None:
        for name, value in (("_fields", dict(fields)), ("direction", direction), ("x", x)):
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        try:
            return self._fields[name]
        except KeyError:
            near = get_close_matches(name, [*self._fields, "direction", "x"], n=3)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise AttributeError(f"this record of {self._fields.get('command')} has no field {name!r}{hint}") from None

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name}: a record does not change")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._fields]

    def __reduce__(self) -> tuple[Any, ...]:
        return Record, (self._fields, self.direction, self.x)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and dict(self._fields) == dict(other._fields)

    def __hash__(self) -> int:
        return hash(json.dumps(self._fields, sort_keys=True))

    def to_dict(self) -> dict[str, Any]:
        """All fields by name, as they stand in a file of records."""
        return dict(self._fields)

    def __repr__(self) -> str:
        names = [n for n in (*_QUESTION, *_ANSWER) if self._fields.get(n) is not None]
        if "upper" in names:
            names = [n for n in names if n != "upper_log10"]
        return f"Record({', '.join(f'{n}={_text(self._fields[n])}' for n in names)})"

    def _repr_html_(self) -> str:
        return Records([self])._repr_html_()

    def to_pandas(self) -> pd.DataFrame:
        """A table with one row."""
        return Records([self]).to_pandas()

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write a file with this one record."""
        Records([self]).save(file)

    def report(self, page: str | os.PathLike[str]) -> None:
        """Write the HTML page of this one record."""
        Records([self]).report(page)

    def plot(self, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
        """See :meth:`Records.plot`."""
        return Records([self]).plot(ax)


class Records(Sequence[Record]):
    """Records in the order in which a run made them.

    ``fits`` are the records of how constants grow with n, where a run has them; ``finding`` is the sentence with
    which the program ends.
    """

    def __init__(self, rows: Iterable[Record], fits: Iterable[Record] = (), finding: str = "") -> None:
        self._rows = tuple(rows)
        self.fits = tuple(fits)
        self.finding = finding

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> Records: ...
    def __getitem__(self, index: int | slice) -> Record | Records:
        return Records(self._rows[index]) if isinstance(index, slice) else self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Records) and self._rows == other._rows and self.fits == other.fits

    __hash__ = None  # type: ignore[assignment]

    def to_pandas(self) -> pd.DataFrame:
        """One row for each record, one column for each field; what is nested becomes columns as ``input.sha256``."""
        import pandas as pd

        return pd.json_normalize([row.to_dict() for row in self._rows])

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write all records, one line of JSON for each, as the program does with ``--out``; a new file."""
        with open(file, "x", encoding="utf-8") as out:
            out.writelines(self._lines())

    def report(self, page: str | os.PathLike[str]) -> None:
        """Write one HTML page that shows the records and needs no network, as ``lipscope report`` does.

        A page that is there is replaced; any other file is not.
        """
        _require_page(page)
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "records.jsonl")
            with open(file, "w", encoding="utf-8") as out:
                out.writelines(self._lines())
            _core.write_page([file], os.fspath(page))

    def plot(self, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
        """Draw what people would look at: heads as a heat map, growth with n and its fit, else enclosures as bars."""
        from lipscope.plots import plot

        return plot(self, ax)

    def _lines(self) -> list[str]:
        return [json.dumps(row.to_dict(), ensure_ascii=False) + "\n" for row in (*self._rows, *self.fits)]

    def _columns(self) -> tuple[list[str], list[str]]:
        """What all rows have in common, and the columns of the table."""
        fields = [row.to_dict() for row in self._rows]
        common = [n for n in _QUESTION if len({_text(f.get(n)) for f in fields}) == 1 and fields[0].get(n) is not None]
        columns = [
            n
            for n in (*_QUESTION, *_ANSWER)
            if n not in common and any(f.get(n) is not None for f in fields)
        ]
        # a bound that fits into a number needs no logarithm
        if all(f.get("upper") is not None or f.get("upper_log10") is None for f in fields) and "upper_log10" in columns:
            columns.remove("upper_log10")
        return common, columns

    def _cells(self) -> tuple[str, list[str], list[list[str]]]:
        common, columns = self._columns()
        first = self._rows[0].to_dict()
        title = ", ".join(f"{n} {_text(first[n])}" for n in common)
        shown = self._rows[:_ROWS_SHOWN]
        return title, columns, [[_text(row.to_dict().get(n)) for n in columns] for row in shown]

    def __repr__(self) -> str:
        if not self._rows:
            return "Records: none"
        title, columns, cells = self._cells()
        widths = [max(len(line[i]) for line in [columns, *cells]) for i in range(len(columns))]
        screen = shutil.get_terminal_size().columns
        for name in _LEFT_OUT_FIRST:
            if sum(widths) + 2 * (len(widths) - 1) > screen and name in columns:
                at = columns.index(name)
                columns, cells, widths = (
                    columns[:at] + columns[at + 1 :],
                    [line[:at] + line[at + 1 :] for line in cells],
                    widths[:at] + widths[at + 1 :],
                )
        lines = [
            "  ".join(cell.rjust(width) for cell, width in zip(line, widths))
            for line in [columns, *cells]
        ]
        if len(self) > _ROWS_SHOWN:
            lines.append(f"... {len(self) - _ROWS_SHOWN} more")
        answer = ["", textwrap.fill(self.finding, screen)] if self.finding else []
        return "\n".join([textwrap.fill(title, screen), "", *lines, *answer])

    def _repr_html_(self) -> str:
        if not self._rows:
            return "<p>Records: none</p>"
        title, columns, cells = self._cells()
        head = "".join(f"<th>{html.escape(c)}</th>" for c in columns)
        body = "".join(
            "<tr>" + "".join(f'<td style="text-align:right">{html.escape(c)}</td>' for c in line) + "</tr>"
            for line in cells
        )
        more = f"<p>{len(self) - _ROWS_SHOWN} more rows</p>" if len(self) > _ROWS_SHOWN else ""
        finding = f"<p><b>{html.escape(self.finding)}</b></p>" if self.finding else ""
        return f"<p>{html.escape(title)}</p><table><tr>{head}</tr>{body}</table>{more}{finding}"


def _require_page(file: str | os.PathLike[str]) -> None:
    """FileExistsError if something else than a page is there."""
    try:
        with open(file, "rb") as there:
            begin = there.read(15)
    except FileNotFoundError:
        return
    if begin and begin.lower() != b"<!doctype html>":
        raise FileExistsError(f"{os.fspath(file)}: this file is no page, and is not replaced")


def _is_fit(fields: Mapping[str, Any]) -> bool:
    return "fits" in fields


def read(file: str | os.PathLike[str]) -> Records:
    """The records of a file that the program or :meth:`Records.save` wrote."""
    rows: list[Record] = []
    fits: list[Record] = []
    with open(file, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                fields = json.loads(line)
            except json.JSONDecodeError as wrong:
                raise InputError(f"{os.fspath(file)}: line {number}: not a record: {wrong}") from None
            if not isinstance(fields, dict) or "command" not in fields:
                raise InputError(f"{os.fspath(file)}: line {number}: not a record: it has no \"command\"")
            (fits if _is_fit(fields) else rows).append(Record(fields))
    return Records(rows, fits)

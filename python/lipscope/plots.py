"""Pictures of records, by matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import matplotlib.axes

    from lipscope.records import Record, Records

__all__ = ["plot"]


def plot(records: Records, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
    """Draw the records: heads as a heat map, growth with n, or enclosures as error bars."""
    import matplotlib.pyplot as plt

    rows = [r for r in records if _get(r, "lower") is not None or _get(r, "upper") is not None]
    if not rows:
        raise ValueError("plot: no record here has a number from below or above")
    if ax is None:
        ax = plt.subplots(layout="constrained")[1]
    layers = {_get(r, "layer") for r in rows}
    heads = {_get(r, "head") for r in rows}
    lengths = {_get(r, "n") for r in rows}
    if len(layers) > 1 and len(heads) > 1:
        _heat_map(ax, rows)
    elif len(lengths) > 2:
        _growth(ax, rows, records.fits)
    else:
        _enclosures(ax, rows)
    return ax


def _get(record: Record, name: str) -> Any:
    return record.to_dict().get(name)


def _heat_map(ax: matplotlib.axes.Axes, rows: list[Record]) -> None:
    """The largest ``lower`` of each layer and head."""
    import numpy as np

    layers = sorted({r.layer for r in rows})
    heads = sorted({r.head for r in rows})
    most = np.full((len(layers), len(heads)), np.nan)
    for r in rows:
        if _get(r, "lower") is not None:
            at = layers.index(r.layer), heads.index(r.head)
            most[at] = np.fmax(most[at], r.lower)
    image = ax.imshow(most, aspect="auto", origin="lower")
    ax.set_xticks(range(len(heads)), [str(h) for h in heads])
    ax.set_yticks(range(len(layers)), [str(layer) for layer in layers])
    ax.set(xlabel="head", ylabel="layer", title="largest constant found")
    ax.figure.colorbar(image, ax=ax)


def _growth(ax: matplotlib.axes.Axes, rows: list[Record], fits: tuple[Record, ...]) -> None:
    """``lower`` against n, a colour for each layer and head, with the fit C n^p."""
    import numpy as np

    parts = sorted({(_get(r, "layer"), _get(r, "head")) for r in rows}, key=str)
    for part in parts:
        here = [r for r in rows if (_get(r, "layer"), _get(r, "head")) == part and _get(r, "lower") is not None]
        (points,) = ax.plot([r.n for r in here], [r.lower for r in here], "o", markersize=4, label=_name(part))
        for fit in fits:
            if (_get(fit, "layer"), _get(fit, "head")) != part:
                continue
            factor, exponent = _get(fit, "constant"), _get(fit, "exponent")
            if factor is not None and exponent is not None:
                n = np.geomspace(min(r.n for r in here), max(r.n for r in here))
                ax.plot(n, factor * n**exponent, color=points.get_color(), linewidth=1)
    ax.set(xscale="log", yscale="log", xlabel="tokens n", ylabel="constant, from below")
    if 1 < len(parts) <= 12:
        ax.legend()


def _enclosures(ax: matplotlib.axes.Axes, rows: list[Record]) -> None:
    """A bar from ``lower`` to the least number from above for each record."""
    places = range(len(rows))
    lows = [_get(r, "lower") for r in rows]
    highs = [min((h for h in (_get(r, "upper_whp"), _get(r, "upper")) if h is not None), default=None) for r in rows]
    for place, low, high in zip(places, lows, highs):
        if low is not None and high is not None:
            ax.plot([place, place], [low, high], color="C0")
        if low is not None:
            ax.plot(place, low, "^", color="C0")
        if high is not None:
            ax.plot(place, high, "v", color="C0")
    ax.set_xticks(list(places), [_name((_get(r, "layer"), _get(r, "head")), _get(r, "n")) for r in rows], rotation=90)
    ax.set(ylabel="constant: at least, at most")
    known = [v for v in (*lows, *highs) if v is not None and v > 0]
    if known and max(known) > 20 * min(known):
        ax.set_yscale("log")


def _name(part: tuple[Any, Any], n: Any = None) -> str:
    layer, head = part
    words = [f"layer {layer}"] if layer is not None else []
    words += [f"head {head}"] if head not in (None, "all") else []
    words += [f"n = {n}"] if n is not None else []
    return ", ".join(words) or "all heads"

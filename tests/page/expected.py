"""What the page must say of records: ranks and extremes, worked out again from the same records."""

import decimal
import math
import statistics


def shown(x, digits=3):
    """A number as the page writes it, between 0.001 and a million."""
    if x == 0:
        return "0"
    assert 1e-3 <= abs(x) < 1e6, x
    # halves go up, as they are written in decimals
    exact = decimal.Decimal(repr(float(x)))
    rounded = exact if x == int(x) else decimal.Context(prec=digits, rounding=decimal.ROUND_HALF_UP).plus(exact)
    text = f"{rounded:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def shown_below(x):
    """Four digits, rounded down; a thousandth of the last one does not count."""
    return _shown_from(x, decimal.ROUND_FLOOR, 1e-3)


def shown_above(x):
    return _shown_from(x, decimal.ROUND_CEILING, -1e-3)


def _shown_from(x, rounding, least):
    if x == 0:
        return "0"
    last = 10.0 ** (math.floor(math.log10(x)) - 3)
    return shown(float(decimal.Context(prec=4, rounding=rounding).plus(decimal.Decimal(x + least * last))), 4)


def place(r):
    layer = "the layer" if r["layer"] is None else f"layer {r['layer']}"
    return layer if r["head"] == "all" else f"head {r['head']} of {layer}"


def capital(text):
    return text[:1].upper() + text[1:]


def listed(parts):
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def tied_names(group):
    if len(group) > 2:
        others = len(group) - 1
        return f"{place(group[0])} and {others} {'other' if others == 1 else 'others'}"
    return listed([place(r) for r in group])


def places(records):
    """The largest of each layer and head, the strongest first; equal ones as they came."""
    largest = {}
    for r in records:
        if r["lower"] is None:
            continue
        key = (r["layer"], r["head"])
        if key not in largest or r["lower"] > largest[key]["lower"]:
            largest[key] = r
    return sorted(largest.values(), key=lambda r: -r["lower"])


def rankings(records):
    whole = places([r for r in records if r["head"] == "all"])
    heads = places([r for r in records if r["head"] != "all"])
    return [(word, found) for word, found in (("layer", whole), ("head", heads)) if found]


def levels(ranking):
    """Equal ones together."""
    found = []
    for r in ranking:
        if found and found[-1][0]["lower"] == r["lower"]:
            found[-1].append(r)
        else:
            found.append([r])
    return found


def followers(ranking):
    groups = levels(ranking)
    told = lambda g: f"{tied_names(g)} ({shown(g[0]['lower'])})"
    if len(groups) == 1:
        return f"All {len(ranking)} react alike ({shown(ranking[0]['lower'])})." if len(ranking) > 1 else ""
    words = "Then " + listed([told(g) for g in groups[1:3]])
    return words + (f"; least, {told(groups[-1])}." if len(groups) > 3 else ".")


def count_of(n, word):
    return f"{n:,} {word}{'' if n == 1 else 's'}"


def input_of(r):
    name = (r.get("input") or {}).get("name")
    return f"{count_of(r['n'], 'token')}{f' of {name}' if name else ''} (sample {r['sample']})"


def above(r):
    """The smaller claim from above: its words in the headline."""
    proved = r["upper_log10"] if r["upper_log10"] is not None else math.log10(r["upper"]) if r["upper"] else None
    likely = math.log10(r["upper_whp"]) if r["upper_whp"] else None
    if proved is None and likely is None:
        return ". Nothing is known from above."
    if proved is not None and (likely is None or proved <= likely):
        return f", and none comes out more than {shown_above(10**proved)} times as large."
    return f", and none comes out more than {shown_above(10**likely)} times as large, but for a chance of 10⁻¹⁰."


def headline(records):
    word, ranking = rankings(records)[0]
    top = ranking[0]
    tied = levels(ranking)[0]
    inputs = sum((r["layer"], r["head"]) == (top["layer"], top["head"]) for r in records)
    if len(ranking) > 1:
        who = (f"{capital(tied_names(tied))} react{'' if len(tied) > 1 else 's'} most of {count_of(len(ranking), word)}"
               f"{', equally' if len(tied) > 1 else ''}: at {input_of(top)}")
    else:
        who = f"{capital(place(top))}: at {input_of(top)}" + (f", the worst of {count_of(inputs, 'input')}" if inputs > 1 else "")
    return f"{who}, a small change of the input can come out {shown_below(top['lower'])} times as large{above(top)}"


def rank_sentences(records):
    said = []
    for k, (word, ranking) in enumerate(rankings(records)):
        tied = levels(ranking)[0]
        first = (f"Of {count_of(len(ranking), word)}, {tied_names(tied)} react{'' if len(tied) > 1 else 's'} most "
                 f"({shown(tied[0]['lower'])}).") if k > 0 else ""
        words = " ".join(w for w in (first, followers(ranking)) if w)
        if words:
            said.append(words)
    return said


def top_ten(records):
    """[(where, tokens, sample, at least)]"""
    known = sorted((r for r in records if r["lower"] is not None), key=lambda r: -r["lower"])[:10]
    return [(capital(place(r)), shown(r["n"]), str(r["sample"]), shown_below(r["lower"])) for r in known]


def median(values):
    """The mean of the two middle ones, by the standard library."""
    return statistics.median(values)

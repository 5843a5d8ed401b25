"""Records as the program writes them, made up for the tests of the page."""

import json
import math

WORDS = ["Call", " me", " Ishmael", ".", " Some", " years", " ago", "—never"]


def record(**fields):
    """A measurement, with these fields in place of the usual ones."""
    usual = {
        "schema": 1, "command": "measure", "version": "0.1.0", "model": "tiny/", "model_sha256": "ab" * 32,
        "layer": 0, "head": "all", "map": "attn", "kind": "dot", "mask": "none", "norm": "2",
        "n": 8, "d": 16, "sample": 0, "radius_max": 4.0, "radius_rms": 3.0,
        "lower": 2.0, "lower_by": "golub-kahan-f32", "upper": None, "upper_log10": None,
        "upper_by": None, "upper_whp": None, "delta": 1e-10, "scope": "input",
        "residual": 1e-6, "steps": 20, "status": "converged", "dtype": "f32", "seed": 0, "seconds": 0.5,
    }
    unknown = set(fields) - set(usual) - {"parameters", "details", "value_of", "value", "command_line", "machine", "input"}
    assert not unknown, unknown
    return {**usual, **fields}


def shares(n, heavy):
    """Shares of n tokens, most of it on one; three digits, as measure has them."""
    weights = [1.0 + t for t in range(n)]
    weights[heavy] = 4.0 * n
    return [float(f"{w / sum(weights):.3g}") for w in weights]


def audit(layers=3, heads=2, lengths=(4, 8), samples=2):
    """Layers and heads over a text; constants grow as n^0.25, most in the last layer but one."""
    records = []
    for layer in range(layers):
        for head in ["all", *range(heads)]:
            for n in lengths:
                for sample in range(samples):
                    size = 10.0 if layer == layers - 2 else 3.0 + layer
                    lower = size * n**0.25 * (1 + 0.01 * sample) / (1 if head == "all" else 2 + head)
                    records.append(record(
                        layer=layer, head=head, n=n, sample=sample, lower=lower,
                        upper_whp=1.05 * lower, upper=4 * lower, upper_log10=math.log10(4 * lower),
                        upper_by="split_paths", radius_rms=3.0 + 0.1 * sample,
                        parameters={"tokens": True},
                        details={"tokens": WORDS[:n], "input_share": shares(n, layer % n),
                                 "output_share": shares(n, (layer + head + 1) % n if head != "all" else n - 1)}))
            records.append(growth(layer=layer, head=head, exponent=0.25, constant=size))
    return records


def growth(**fields):
    first = record()
    of = {k: first[k] for k in ("schema", "version", "model", "model_sha256", "map", "kind", "mask", "norm",
                                "d", "scope", "dtype", "seed")}
    return {**of, "command": "growth", "fits": "lower", "points": 4, "exponent_low": 0.2,
            "exponent_high": 0.3, "confidence": 0.95, "r_squared": 0.99, "radius_correlation": 0.1, **fields}


def bounds():
    names = {"castin24_ball": 4.5, "column_sums": 3.25, "castin24_meanfield": 412.0}
    return [record(command="bound", lower=None, lower_by=None, n=64, radius_max=11.0, upper_by=name,
                   upper=10**log if log < 300 else None, upper_log10=log, scope="ball",
                   details={"best": name == "column_sums", "regime": "sqrt-n"})
            for name, log in names.items()]


def searched():
    return [record(command="search", n=20, radius_max=2.0, lower=value, lower_by=by, scope="ball",
                   upper=14.0, upper_log10=math.log10(14.0), upper_by="column_sums", parameters={"start": k})
            for k, (value, by) in enumerate([(3.0, "ascent"), (6.8825, "construction"), (5.0, "ascent"), (7.1, "ascent")])]


def meanfield():
    return [record(command="meanfield", norm="w2", n=2, lower=0.591, upper=3.0, upper_log10=math.log10(3.0),
                   upper_by="column_sums_meanfield", lower_by="no-split", scope="input"),
            record(command="meanfield", norm="w2", n=2, lower=0.75, upper=3.0, upper_log10=math.log10(3.0),
                   upper_by="column_sums_meanfield", lower_by="split", scope="input")]


def certified():
    """Positions of a text: proved at 0.01, 0.02, …, attacked at ten times that; one where nothing is proved."""
    return [record(command="certify", map="model", layer=None, mask="causal", n=k + 1, sample=k,
                   lower=None if k == 4 else 0.01 * (k + 1), lower_by="deviation(l2_row_sums)",
                   upper=0.1 * (k + 1), upper_log10=math.log10(0.1 * (k + 1)), upper_by="attack",
                   details={"predicted": "a", "lower_is": "proved", "upper_is": "found"})
            for k in range(5)]


def experiment(name="some-tightness"):
    """Series over one variable, as docs/records.md has them."""
    first = record(command="reproduce", lower=None, n=0,
                   parameters={"experiment": name},
                   details={"title": "L2 attention nearly attains its bound", "explanation": "The best found, and 4p + 1.",
                            "y_name": "inf-norm", "log_x": True, "log_y": False})
    points = [(3, 2.2922, 2.8522), (9, 4.2046, 5.1605), (51, 8.2624, 9.5906)]
    return [first] + [record(command="reproduce", norm="inf", n=n, lower=low, upper=up,
                             parameters={"experiment": name, "series": "found", "x_name": "N", "x": n})
                      for n, low, up in points]


def cloud():
    """Several measurements at each length, and a fit through them."""
    asked = {"experiment": "castin-real", "series": "layer 0", "x_name": "n"}
    first = record(command="reproduce", model="", lower=None, n=0, parameters={"experiment": "castin-real"},
                   details={"title": "Attention at the inputs of a model", "log_x": True, "log_y": True})
    points = [record(command="reproduce", n=n, lower=value, parameters={**asked, "x": n, "sample": s})
              for n in (10, 100) for s, value in enumerate((n**0.5, 2 * n**0.5))]
    fit = {"schema": 1, "command": "growth", "model": "m", "layer": 0, "head": "all", "exponent": 0.5, "constant": 1.5,
           "exponent_low": 0.4, "exponent_high": 0.6, "points": 4, "parameters": asked}
    return [first] + points + [fit]


def run(folder, valid, test=None, promised=None):
    """What train writes of a run: losses over the steps, and what the constant was kept below."""
    asked = {"experiment": f"{folder}, losses", "x_name": "step"}
    first = record(command="train", model=folder, lower=None, n=0, parameters={"experiment": f"{folder}, losses"},
                   details={"title": f"{folder}: losses", "y_name": "nats a character", "log_x": False, "log_y": False})
    value = lambda series, step, loss: record(
        command="train", model=folder, lower=None, lower_by=None, norm=None, value_of="loss in nats a character", value=loss,
        parameters={**asked, "series": series, "x": step})
    records = [first] + [value("valid", step, loss) for step, loss in valid.items()]
    records += [value("train", step, loss - 0.5) for step, loss in valid.items()]
    if test is not None:
        records.append(value("test", max(valid), test))
    for step, (upper, limit) in (promised or {}).items():
        records.append(record(command="train", model=folder, map="model", lower=None, lower_by=None, upper=upper, upper_log10=math.log10(upper),
                              upper_by="stack_constant", parameters={"experiment": f"{folder}, constant", "series": "certified",
                                                                     "x_name": "step", "x": step, "limit": limit}))
    return records


def losses():
    """Values that are no constants, of more series than a palette of four has colours."""
    first = record(command="train", lower=None, n=0, parameters={"experiment": "runs/l2, losses"},
                   details={"title": "runs/l2: losses", "y_name": "nats a character", "log_x": False, "log_y": False})
    return [first] + [record(command="train", lower=None, lower_by=None, norm=None, value_of="loss in nats a character",
                             value=3.0 - k / 10 - step / 100,
                             parameters={"experiment": "runs/l2, losses", "series": f"model {k}", "x_name": "step", "x": step})
                      for k in range(5) for step in (20, 10)]


def many(count):
    """A long sweep: every record another constant."""
    for i in range(count):
        yield record(layer=i % 12, head=i % 13 if i % 13 < 12 else "all", n=2 + 2 * (i // 156 % 49), sample=i // 7644,
                     lower=1.0 + (i * 7919 % count) / count, radius_rms=3.0 + i % 97 / 97, residual=1e-6 * (1 + i % 89))


def write(path, records):
    with open(path, "w", encoding="utf-8") as file:
        for r in records:
            file.write(json.dumps(r, ensure_ascii=False) + "\n")

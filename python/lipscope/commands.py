"""What the commands of the program do, under the same names and with the same options.

``lengths="8,32"`` of the command line may be a list here, ``heads`` and ``layers`` too, and ``radius`` a number. What
is None is as if it were not given. Of Python alone are ``progress`` (see :mod:`lipscope.progress`), ``directions``, and
what is in memory in place of a folder or a file: an :class:`lipscope.Attention`, an array of tokens, token ids as a list
or an array, and the masses and positions of :func:`meanfield`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, Union

from lipscope import _core
from lipscope.arrays import plain
from lipscope.errors import InputError
from lipscope.masks import both_ends, window_of
from lipscope.progress import Progress, shown
from lipscope.records import Record, Records

if TYPE_CHECKING:
    from lipscope.attention import Attention

__all__ = ["bound", "certify", "invert", "meanfield", "measure", "reproduce", "search", "train", "wasserstein"]

Path = Union[str, "os.PathLike[str]"]
Numbers = Union[int, str, Iterable[int], None]
"""One number, several, or as on the command line: ``"2:100:2"``, ``"8,32"``."""
Ids = Union[Path, Iterable[int], None]
"""Token ids: a file, or the numbers themselves."""


def _listed(name: str, numbers: Numbers) -> str | None:
    if numbers is None or isinstance(numbers, str):
        return numbers
    if isinstance(numbers, Iterable):
        return ",".join(str(_whole(name, n)) for n in numbers)
    return str(_whole(name, numbers))


def _whole(name: str, number: Any, least: int = 0) -> int:
    try:
        whole = number.__index__()
    except (AttributeError, TypeError):
        raise TypeError(f"{name}: expected a whole number, got {number!r}") from None
    if whole < least:
        raise ValueError(f"{name}: expected {least} or more, got {whole}")
    return int(whole)


def _real(name: str, number: Any, above: float | None = None, below: float | None = None) -> float:
    try:
        value = float(number)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: expected a number, got {number!r}") from None
    if value != value or (above is not None and not value > above) or (below is not None and not value < below):
        between = f"above {above}" + (f" and below {below}" if below is not None else "")
        raise ValueError(f"{name}: expected a number {between}, got {value}")
    return value


# what the program sees to when it reads its command line
_CHECKED: dict[str, Callable[[str, Any], Any]] = {
    **{name: _listed for name in ("lengths", "layers", "heads")},
    **{
        name: (lambda least: lambda n, v: _whole(n, v, least))(least)
        for least, names in {
            0: ("offset", "position_heads", "restarts", "warmup", "measure", "positions", "targets", "seed", "threads", "memory"),
            1: (
                "num_heads", "samples", "max_steps", "max_evaluations", "depth", "max_iterations", "width", "context",
                "mlp_width", "batch", "eval_every", "iterations", "steps",
            ),
            2: ("duplicate", "probes"),
        }.items()
        for name in names
    },
    **{
        name: lambda n, v: _real(n, v, 0.0)
        for name in (
            "tolerance", "tau", "nu", "epsilon", "move_atoms", "scale", "truncation", "lr", "max_lipschitz",
            "spectral_cap", "longest_token", "muon_lr", "score_limit",
        )
    },
    "enclose": lambda n, v: _real(n, v, 1.0),
    "delta": lambda n, v: _real(n, v, 0.0, 1.0),
    "contraction": lambda n, v: _real(n, v, 0.0, 1.0),
    "residual_share": lambda n, v: _real(n, v, 0.0, 1.0),
    "radius": lambda n, v: v if isinstance(v, str) else repr(_real(n, v, 0.0)),
    "norm": lambda n, v: str(v),
    "window": lambda n, v: window_of(v),
    "padding": lambda n, v: "{}:{}".format(*both_ends(v)),
}  # fmt: skip


def _options(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments as the core reads them; `progress` is none of its options."""
    options = {}
    for name, value in given.items():
        if value is None or name == "progress":
            continue
        if name in ("mass", "position"):
            value = plain(value)
        if isinstance(value, os.PathLike):
            value = os.fspath(value)
        if name == "runs":
            value = [value] if isinstance(value, str) else [os.fspath(run) for run in value]
        if name == "enclose" and value == "none":
            name, value = "from_above", False
        if name == "ids" and not isinstance(value, str):
            name, value = "token_ids", _token_ids(value)
        options[name] = _CHECKED.get(name, lambda n, v: v)(name, value)
    return options


def _token_ids(ids: Any) -> list[int]:
    numbers = ids.tolist() if hasattr(ids, "tolist") else ids  # of an array
    if not isinstance(numbers, Iterable):
        raise TypeError(f"ids: expected a file or whole numbers, got {numbers!r}")
    whole = [_whole("ids", number) for number in numbers]
    if not whole:
        raise ValueError("ids: expected at least one, got none")
    return whole


def _in_python(message: str) -> str:
    """A message of the library with the options as they are called here."""
    message = re.sub(r"--([a-z][a-z-]*)", lambda m: m[1].replace("-", "_"), message)
    return message.replace("MODEL_DIR", "a folder")


def _run(
    command: Callable[..., dict[str, Any]],
    options: dict[str, Any],
    progress: Progress,
    weights: _core.Layer | _core.Transformer | None = None,
    tokens: Any = None,
) -> Records:
    parts = {} if command is _core.train else {"weights": weights, "tokens": tokens}
    with shown(progress) as told:
        try:
            found = command(options, progress=told, **parts)
        except InputError as wrong:
            raise InputError(_in_python(str(wrong))) from None
    return _records_of(found)


def _records_of(found: dict[str, Any]) -> Records:
    arrays = found["arrays"]
    rows = [Record(json.loads(line), *arrays.get(i, (None, None))) for i, line in enumerate(found["rows"])]
    return Records(rows, [Record(json.loads(line)) for line in found["fits"]], found["finding"])


def _run_on(
    executor: Executor, workers: int | None, options: dict[str, Any], progress: Progress, in_memory: bool
) -> Records:
    from lipscope.executor import measure_on

    if in_memory:
        raise TypeError("executor: workers read weights and tokens from files; these are in memory")
    for name in ("directions", "budget"):
        if options.get(name):
            raise TypeError(f"{name}: not with an executor")
    count = None if workers is None else _whole("workers", workers, 1)
    with shown(progress) as told:
        try:
            return _records_of(measure_on(executor, options, count, told))
        except InputError as wrong:
            raise InputError(_in_python(str(wrong))) from None


def _one_or_all(records: Records) -> Record | Records:
    return records[0] if len(records) == 1 else records


def _source(given: dict[str, Any]) -> tuple[dict[str, Any], _core.Layer | _core.Transformer | None, Any]:
    """Where weights and tokens come from: the options, the weights in memory, the tokens in memory."""
    from lipscope.attention import Attention

    options = dict(given)
    subject, tokens, length = (options.pop(name, None) for name in ("subject", "input", "length"))
    if length is not None:
        if options["lengths"] is not None:
            raise TypeError("length and lengths are one option; give one of them")
        options["lengths"] = length
    weights: _core.Layer | _core.Transformer | None = None
    if isinstance(subject, Attention):
        layer, weights = subject, subject.weights()
        own: dict[str, Any] = {"kind": layer.kind, "mask": layer.mask, "window": layer.window, "padding": layer.padding}
        own |= {"tau": layer.tau, "nu": layer.nu, "epsilon": layer.epsilon}
        for name, value in own.items():
            if options.get(name) is not None:
                raise TypeError(f"{name}: the layer has its own; make another with replace({name}=...)")
            options[name] = value
        for name in ("weights", "random", "num_heads"):
            if options.get(name) is not None:
                raise TypeError(f"{name}: a layer was given already")
    elif isinstance(subject, _core.Transformer):
        weights = subject
    elif subject is not None:
        if not isinstance(subject, (str, os.PathLike)):
            raise TypeError(f"expected a folder or a lipscope.Attention, got {type(subject).__name__}")
        options["model"] = os.fspath(subject)
    if isinstance(tokens, (str, os.PathLike)):
        options["input"] = os.fspath(tokens)
        tokens = None
    embedded = options.pop("embedded", None)
    if isinstance(embedded, (str, os.PathLike)):
        options["embedded"] = os.fspath(embedded)
    elif embedded is not None:
        if tokens is not None:
            raise TypeError("input and embedded are two sources of tokens; give one")
        tokens = embedded
        options["tokens_embedded"] = True
    return _options(options), weights, None if tokens is None else plain(tokens)


def measure(
    subject: Path | Attention | _core.Transformer | None = None,
    input: Any = None,
    *,
    weights: Path | None = None,
    random: str | None = None,
    num_heads: int | None = None,
    kind: str | None = None,
    tau: float | None = None,
    nu: float | None = None,
    epsilon: float | None = None,
    text: Path | None = None,
    ids: Ids = None,
    embedded: Any = None,
    length: int | None = None,
    lengths: Numbers = None,
    samples: int | None = None,
    offset: int | None = None,
    radius: float | str | None = None,
    dtype: str | None = None,
    map: str | None = None,
    layers: Numbers = None,
    heads: Numbers = None,
    mask: str | None = None,
    window: int | None = None,
    padding: tuple[int, int] | None = None,
    norm: str | int | None = None,
    tolerance: float | None = None,
    max_steps: int | None = None,
    enclose: float | str | None = None,
    delta: float | None = None,
    certificate: str | None = None,
    budget: float | None = None,
    memory: int | None = None,
    tokens: bool | None = None,
    seed: int | None = None,
    threads: int | None = None,
    out: Path | None = None,
    resume: bool | None = None,
    directions: bool | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    progress: Progress = None,
) -> Record | Records:
    """How strongly each layer or head reacts at these inputs: ``lipscope measure``.

    ``subject`` is a Hugging Face folder or an :class:`lipscope.Attention`; ``input`` the tokens, an array [n, d] or a
    file ``X.npy``; ``embedded`` the input of layer 0 of a model, which goes through it. ``window`` and ``padding``
    (tokens at the beginning and at the end) hide tokens beside the mask. One measurement gives a :class:`Record`, several give :class:`Records`. ``directions`` keeps the
    witness of every number as ``record.direction`` (of an :class:`lipscope.Attention` it is always kept).
    ``enclose=1.05`` goes on until ``upper_whp`` is within this factor of ``lower``; ``enclose="none"`` spends nothing on it. With
    ``out="audit.jsonl"`` each record is written as it is made, and ``resume=True`` goes on after an interruption.

    ``executor`` is any ``concurrent.futures.Executor`` whose workers answer the questions, in this machine or others
    (docs/cluster.md); ``workers`` how many it has, where it does not say; ``threads`` then counts for each worker, and
    is 1. The result and the file are those of a run without it.
    """
    given = dict(locals())
    del given["executor"], given["workers"]
    options, given_weights, x = _source(given)
    if executor is not None:
        return _one_or_all(_run_on(executor, workers, options, progress, given_weights is not None or x is not None))
    if workers is not None:
        raise TypeError("workers: there is no executor")
    if given_weights is not None and directions is None:
        options["directions"] = True
    return _one_or_all(_run(_core.measure, options, progress, given_weights, x))


def bound(
    subject: Path | Attention | None = None,
    *,
    weights: Path | None = None,
    random: str | None = None,
    num_heads: int | None = None,
    kind: str | None = None,
    tau: float | None = None,
    nu: float | None = None,
    epsilon: float | None = None,
    length: int | None = None,
    lengths: Numbers = None,
    radius: float | str | None = None,
    map: str | None = None,
    layers: Numbers = None,
    heads: Numbers = None,
    mask: str | None = None,
    window: int | None = None,
    padding: tuple[int, int] | None = None,
    norm: str | int | None = None,
    seed: int | None = None,
    threads: int | None = None,
    out: Path | None = None,
    resume: bool | None = None,
    progress: Progress = None,
) -> Records:
    """Every bound from above that is proved for these weights, length and radius: ``lipscope bound``."""
    given = dict(locals())
    options, given_weights, _ = _source(given)
    return _run(_core.bound, options, progress, given_weights)


def search(
    subject: Path | Attention | None = None,
    *,
    weights: Path | None = None,
    random: str | None = None,
    num_heads: int | None = None,
    kind: str | None = None,
    tau: float | None = None,
    nu: float | None = None,
    epsilon: float | None = None,
    length: int | None = None,
    lengths: Numbers = None,
    radius: float | str | None = None,
    map: str | None = None,
    layers: Numbers = None,
    heads: Numbers = None,
    mask: str | None = None,
    window: int | None = None,
    padding: tuple[int, int] | None = None,
    norm: str | int | None = None,
    restarts: int | None = None,
    max_evaluations: int | None = None,
    budget: float | None = None,
    seed: int | None = None,
    threads: int | None = None,
    out: Path | None = None,
    resume: bool | None = None,
    progress: Progress = None,
) -> Record | Records:
    """The inputs at which a layer reacts most: ``lipscope search``.

    The best of each search, with its tokens as ``record.x`` and the direction they amplify as ``record.direction``;
    the other starts are in the file ``out``.
    """
    given = dict(locals())
    options, given_weights, _ = _source(given)
    # with them, a search that is in the file is made again
    options["directions"] = not resume
    found = _run(_core.search, options, progress, given_weights)
    best = [row for row in found if row.parameters.get("of") == "best"]
    return _one_or_all(Records(best, found.fits, found.finding))


def meanfield(
    subject: Path | Attention | None = None,
    input: Any = None,
    *,
    weights: Path | None = None,
    random: str | None = None,
    num_heads: int | None = None,
    kind: str | None = None,
    tau: float | None = None,
    nu: float | None = None,
    epsilon: float | None = None,
    text: Path | None = None,
    ids: Ids = None,
    length: int | None = None,
    lengths: Numbers = None,
    samples: int | None = None,
    offset: int | None = None,
    radius: float | str | None = None,
    dtype: str | None = None,
    map: str | None = None,
    layers: Numbers = None,
    heads: Numbers = None,
    mask: str | None = None,
    mass: Any = None,
    position: Any = None,
    step: float | None = None,
    duplicate: int | None = None,
    optimise_masses: bool | None = None,
    move_atoms: float | None = None,
    restarts: int | None = None,
    tolerance: float | None = None,
    max_steps: int | None = None,
    enclose: float | str | None = None,
    delta: float | None = None,
    seed: int | None = None,
    threads: int | None = None,
    out: Path | None = None,
    resume: bool | None = None,
    progress: Progress = None,
) -> Records:
    """How strongly a layer reacts if tokens have masses, in the Wasserstein distance: ``lipscope meanfield``.

    ``mass`` and ``position`` are arrays [n] in place of the tensors of these names in the file of weights: what each
    token weighs, one in all, and where it stands; with positions the mask is causal. By default tokens weigh the same
    and stand one after another.
    """
    given = dict(locals())
    options, given_weights, x = _source(given)
    return _run(_core.meanfield, options, progress, given_weights, x)


wasserstein = meanfield
"""The same under the name of the distance."""


def invert(
    subject: Path | Attention | None = None,
    input: Any = None,
    *,
    weights: Path | None = None,
    random: str | None = None,
    num_heads: int | None = None,
    kind: str | None = None,
    tau: float | None = None,
    nu: float | None = None,
    epsilon: float | None = None,
    text: Path | None = None,
    ids: Ids = None,
    length: int | None = None,
    lengths: Numbers = None,
    samples: int | None = None,
    offset: int | None = None,
    radius: float | str | None = None,
    dtype: str | None = None,
    layers: Numbers = None,
    mask: str | None = None,
    norm: str | int | None = None,
    scale: float | None = None,
    depth: int | None = None,
    tolerance: float | None = None,
    max_iterations: int | None = None,
    log_det: bool | None = None,
    probes: int | None = None,
    truncation: float | None = None,
    given_error: float | None = None,
    activations: str | None = None,
    seed: int | None = None,
    threads: int | None = None,
    out: Path | None = None,
    resume: bool | None = None,
    progress: Progress = None,
) -> Record | Records:
    """Which input led to this output: ``lipscope invert``.

    ``input`` is Y, an array [n, d] or a file; the X found is ``record.x``. Tied L2 weights are taken as
    ``kind="contractive-l2"`` unless ``kind`` says otherwise. Of a folder that ``train`` made, the text is recovered.
    """
    given = dict(locals())
    from lipscope.attention import Attention

    contractive = isinstance(subject, Attention) and subject.kind == "l2" and kind in (None, "contractive-l2")
    if contractive:
        given["kind"] = None
    options, given_weights, y = _source(given)
    if contractive:
        options["kind"] = "contractive-l2"
    trained = "model" in options and kind is None and _core.is_trained(options["model"])
    if trained:
        for name in ("scale", "depth", "log_det", "probes", "truncation", "layers", "mask", "norm", "radius", "dtype"):
            if name in options:
                raise InputError(f"{name}: all of {options['model']} is inverted as it was trained")
    else:
        for name in ("given_error", "activations"):
            if name in options:
                raise InputError(f"{name}: for a folder that train made, without kind")
    options["directions"] = not resume and not trained
    return _one_or_all(_run(_core.recover if trained else _core.invert, options, progress, given_weights, y))


def certify(
    folder: Path,
    text: Path,
    *,
    split: str | None = None,
    positions: int | None = None,
    context: int | None = None,
    targets: int | None = None,
    restarts: int | None = None,
    iterations: int | None = None,
    seed: int | None = None,
    threads: int | None = None,
    out: Path | None = None,
    resume: bool | None = None,
    progress: Progress = None,
) -> Records:
    """How far the input of a model can be changed before its prediction changes: ``lipscope certify``."""
    return _run(_core.certify, _options(dict(locals())), progress)


def train(
    text: Path,
    out: Path,
    *,
    model: str | None = None,
    layers: int | None = None,
    width: int | None = None,
    heads: int | None = None,
    position_heads: int | None = None,
    heads_apart: bool | None = None,
    context: int | None = None,
    positions: str | None = None,
    mlp_width: int | None = None,
    norm: str | None = None,
    residual: str | None = None,
    residual_share: float | None = None,
    head_bias: bool | None = None,
    invertible: bool = False,
    contraction: float | None = None,
    divide: str | None = None,
    quiet_gain: float | None = None,
    activation: str | None = None,
    batch: int | None = None,
    steps: int | None = None,
    lr: float | None = None,
    warmup: int | None = None,
    schedule: str | None = None,
    optimizer: str | None = None,
    muon_lr: float | None = None,
    precision: str | None = None,
    weight_decay: float | None = None,
    dropout: float | None = None,
    clip: float | None = None,
    eval_every: int | None = None,
    measure: int | None = None,
    max_lipschitz: float | None = None,
    promise: str | None = None,
    longest_token: float | None = None,
    singular_values: str | None = None,
    matrix_limits: str | None = None,
    zero_outputs: bool | None = None,
    score_limit: float | None = None,
    cost: bool | None = None,
    spectral_cap: float | None = None,
    seed: int | None = None,
    threads: int | None = None,
    resume: bool | None = None,
    force: bool | None = None,
    progress: Progress = None,
) -> Records:
    """Train a language model of characters into the folder ``out``: ``lipscope train``.

    The records are those of metrics.jsonl. Ctrl-C ends the run after a checkpoint, and ``resume=True`` goes on.
    """
    if invertible:
        if model not in (None, "contractive-l2") or norm not in (None, "none"):
            raise InputError("invertible: such a model is contractive-l2 with norm none")
        model, norm, contraction = "contractive-l2", "none", 0.9 if contraction is None else contraction
    elif contraction is not None:
        raise InputError("contraction: of an invertible model; give invertible=True")
    if cost and max_lipschitz is None:
        raise InputError("cost: what a limit costs; give max_lipschitz")
    given = dict(locals())
    del given["invertible"], given["positions"]
    options = _options(given)
    # a word here, and numbers or lists in the other commands
    if positions is not None:
        options["positions"] = str(positions)
    for name, value in (("layers", layers), ("heads", heads)):
        if value is not None:
            options[name] = _whole(name, value, 1)
    return _run(_core.train, options, progress)


def reproduce(
    name: str,
    *,
    model: Path | None = None,
    text: Path | None = None,
    runs: Path | Iterable[Path] | None = None,
    full: bool | None = None,
    steps: int | None = None,
    seed: int | None = None,
    threads: int | None = None,
    out: Path | None = None,
    resume: bool | None = None,
    progress: Progress = None,
) -> Records:
    """A figure or table of the papers, made again: ``lipscope reproduce``.

    ``runs``: folders of :func:`train` whose last weights are shown in place of models that it trains.
    """
    return _run(_core.reproduce, _options(dict(locals())), progress)

"""Every attention layer of a model in memory: audit."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from lipscope.errors import InputError
from lipscope.jacobian_record import LocalOptions
from lipscope.record import Record, Records
from lipscope.torch.function import check_evaluation, measure_at
from lipscope.torch.layers import LayerRun, find_layers, runs_of
from lipscope.torch.maps import (
    Map,
    attention_map,
    block_map,
    model_map,
    number_of_heads,
    output_projection,
    residual_map,
)
from lipscope.torch.plain_kernels import plain_kernels
from lipscope.torch.widened import short_name, widened

MAPS = ("core", "attn", "residual", "block", "model")


def audit(
    model: nn.Module,
    tokenizer: Any = None,
    text: str | None = None,
    *,
    input_ids: Any = None,
    inputs: Any = None,
    maps: str | Sequence[str] = ("attn",),
    heads: str | Sequence[int] = "all",
    layers: str | Sequence[int] = "all",
    lengths: Sequence[int] | None = None,
    samples: int = 1,
    offset: int = 0,
    dtype: str = "f32",
    norm: str = "2",
    enclose: float | None = None,
    tolerance: float = 1e-5,
    max_steps: int = 300,
    delta: float = 1e-10,
    seed: int = 0,
    threads: int = 0,
    attention: type[nn.Module] | None = None,
    num_heads: int | None = None,
) -> Records:
    """The constants of the layers and heads of a transformer in memory, where an input leads.

    The model runs over the input once; every map is then measured at what its layer got. Layers are
    found by their attention modules (see find_layers), so that any transformers model, and one of your
    own, will do. The model is not changed.

    The maps, as in the program:

    - core: input of the attention module → the heads, before the output projection
    - attn: the same → after the output projection
    - residual: input of the attention sub-layer → its output as the model runs it
    - block: input → output of the whole layer
    - model: input of the first layer → last hidden state after the final norm

    Args:
        model: A torch.nn.Module in evaluation mode.
        tokenizer: A function from text to token ids, as transformers has them; with `text`.
        text: A text; no special tokens are added.
        input_ids: Token ids, [n] or [batch, n], in place of the text.
        inputs: In place of both, what the model is called with: a mapping of keywords (pixel_values,
            attention_mask, …), or a tensor. The first axis counts samples.
        maps: One or several of the maps above.
        heads: "all" together, "each", or numbers; of maps other than attn and core all together.
        layers: "all", or numbers in the order in which the model runs them.
        lengths: Lengths of the windows of the ids. By default one: all of them.
        samples: Windows of each length, one after another, none overlapping.
        offset: Ids that are skipped.
        dtype: Of the pass to the layers' inputs: "f32" (the model's own precision) or "f64".
        norm, enclose, tolerance, max_steps, delta, seed, threads: As in local_constant.
        attention: The class of the attention modules, where it does not have that name.
        num_heads: Where the model does not say.

    Returns:
        Records, one for each input, map, layer and head, in this order.
    """
    options = LocalOptions(
        enclose=enclose,
        norm=norm,
        tolerance=tolerance,
        max_steps=max_steps,
        delta=delta,
        seed=seed,
        threads=threads,
    )
    if not isinstance(model, nn.Module):
        raise InputError(f"model: expected a torch.nn.Module, got {type(model).__name__}")
    model = getattr(model, "_orig_mod", model)  # of torch.compile
    check_evaluation(model, "model")
    wanted = [maps] if isinstance(maps, str) else list(maps)
    for name in wanted:
        if name not in MAPS:
            raise InputError(f"maps: {name!r}; expected {', '.join(MAPS)}")
    if dtype not in ("f32", "f64"):
        raise InputError(f"dtype: {dtype!r}; expected 'f32' or 'f64'")
    calls = list(_inputs(model, tokenizer, text, input_ids, inputs, lengths, samples, offset))
    found = find_layers(model, attention)
    records: list[Record] = []
    with _plain_modules(model):
        for sample, call in calls:
            here = _Sample(model, call, found, dtype)
            for name in wanted:
                records += here.measure(name, heads, layers, num_heads, options, sample)
    return Records(records)


class _Sample:
    """The model at one input: the layers as they ran, in the model's precision and in f64."""

    def __init__(
        self,
        model: nn.Module,
        call: Callable[[], Any],
        layers: Sequence[Layer],
        dtype: str,
        given: dict[str, Any] | None,
        model_sha256: str,
    ) -> None:
        self._model, self._call = model, call
        self._input, self._sha256 = given, model_sha256
        with torch.no_grad(), plain_kernels():
            self._runs = runs_of(layers, call)
            try:
                self._wide = runs_of(layers, widened(call, torch.float64))
            except Exception as error:  # whatever the model does in a precision it was not written for
                if dtype == "f64":
                    raise InputError(f"dtype: the model does not run in f64: {error}") from error
                self._wide = self._runs  # each map then says by itself what it can do in f64
        if len(self._runs) != len(self._wide):
            raise InputError(f"model: runs {len(self._runs)} layers in its precision, {len(self._wide)} in f64")
        self._points = self._wide if dtype == "f64" else self._runs
        self._own = self._runs[0].block.hidden.dtype

    def measure(
        self,
        name: str,
        heads: str | Sequence[int],
        layers: str | Sequence[int],
        num_heads: int | None,
        options: LocalOptions,
        sample: int,
    ) -> Iterator[Record]:
        if name == "model":
            x = self._points[0].block.hidden
            yield self._record(
                model_map(self._model, self._runs, self._call),
                model_map(self._model, self._wide, self._call),
                x, options, sample, map=name, layer=None, head="all",
            )  # fmt: skip
            return
        for i in _numbers(layers, "layers", len(self._runs)):
            run, wide, point = self._runs[i], self._wide[i], self._points[i]
            module = run.layer.attention_name
            if name == "residual" or name == "block":
                make = residual_map if name == "residual" else block_map
                yield self._record(
                    make(run), make(wide), point.block.hidden, options, sample,
                    map=name, layer=i, head="all", module=run.layer.name,
                )  # fmt: skip
                continue
            count = num_heads or number_of_heads(run.layer.attention, getattr(self._model, "config", None))
            projection = output_projection(run.attention)
            for head in _heads(heads, count, run):
                yield self._record(
                    attention_map(run, projection, head, count, core=name == "core"),
                    attention_map(wide, projection, head, count, core=name == "core"),
                    point.attention.hidden, options, sample,
                    map=name, layer=i, head="all" if head is None else head, module=module,
                )  # fmt: skip

    def _record(
        self, f: Map, witness: Map, x: torch.Tensor, options: LocalOptions, sample: int, **fields: Any
    ) -> Record:
        return measure_at(f, x, options, type(self._model).__name__, own=self._own, witness=witness, sample=sample, **fields)


# ---- which heads and layers


def _numbers(chosen: str | Sequence[int], name: str, count: int) -> list[int]:
    if chosen == "all" or chosen == "each":
        return list(range(count))
    if isinstance(chosen, str):
        raise InputError(f"{name}: {chosen!r}; expected a word such as 'all', or numbers from 0 to {count - 1}")
    for i in chosen:
        if isinstance(i, bool) or not isinstance(i, int) or not 0 <= i < count:
            raise InputError(f"{name}: {i!r}; expected numbers from 0 to {count - 1}")
        if list(chosen).count(i) > 1:
            raise InputError(f"{name}: {i} stands twice")
    return list(chosen)


def _heads(chosen: str | Sequence[int], count: int | None, run: LayerRun) -> Sequence[int | None]:
    if chosen == "all":
        return [None]
    if count is None:
        raise InputError(
            f"heads: {type(run.layer.attention).__name__} does not say how many heads it has; say num_heads="
        )
    return _numbers(chosen, "heads", count)


# ---- what the model is called with


def _inputs(
    model: nn.Module,
    tokenizer: Any,
    text: str | None,
    input_ids: Any,
    inputs: Any,
    lengths: Sequence[int] | None,
    samples: int,
    offset: int,
) -> Iterator[tuple[int, Callable[[], Any]]]:
    given = [n for n, v in [("text", text), ("input_ids", input_ids), ("inputs", inputs)] if v is not None]
    if len(given) != 1:
        raise InputError(
            f"expected one of text (with tokenizer), input_ids and inputs, got {' and '.join(given) or 'none'}"
        )
    if inputs is not None:
        if lengths is not None or offset != 0 or samples != 1:
            raise InputError("lengths, samples and offset: choose windows of token ids, not of inputs")
        yield from _given(model, inputs)
        return
    device = next(model.parameters()).device
    for sample, ids in _windows(_ids(tokenizer, text, input_ids), lengths, samples, offset):
        keywords = {"input_ids": ids[None].to(device)}
        yield sample, _caller(model, (), keywords)


def _ids(tokenizer: Any, text: str | None, input_ids: Any) -> torch.Tensor:
    """Rows of token ids."""
    if text is not None:
        if tokenizer is None:
            raise InputError("tokenizer: is missing; a text needs one")
        input_ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    ids = torch.as_tensor(input_ids)
    if ids.dim() not in (1, 2) or ids.numel() == 0:
        raise InputError(f"input_ids: shape {list(ids.shape)}; expected [n] or [batch, n], not empty")
    if ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool:
        raise InputError(f"input_ids: {short_name(ids.dtype)}; expected integers")
    return ids.long().reshape(-1, ids.shape[-1])


def _windows(
    rows: torch.Tensor, lengths: Sequence[int] | None, samples: int, offset: int
) -> Iterator[tuple[int, torch.Tensor]]:
    """For each length so many windows, one after another, none overlapping; of each row."""
    if samples < 1 or offset < 0:
        raise InputError(f"samples: {samples}, offset: {offset}; expected at least 1 and 0")
    there = rows.shape[1]
    chosen = [(there - offset) // samples] if lengths is None else list(lengths)
    if any(n < 1 for n in chosen) or offset + samples * sum(chosen) > there:
        raise InputError(
            f"lengths: {samples} windows of each of {chosen} tokens after {offset} need "
            f"{offset + samples * sum(chosen)} ids, and there are {there}"
        )
    for r, row in enumerate(rows):
        at = offset
        for n in chosen:
            for i in range(samples):
                yield r * samples + i, row[at : at + n]
                at += n


def _given(model: nn.Module, inputs: Any) -> Iterator[tuple[int, Callable[[], Any]]]:
    keywords = dict(inputs) if isinstance(inputs, Mapping) else {}
    args = () if keywords else tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    tensors = [v for v in [*args, *keywords.values()] if isinstance(v, torch.Tensor)]
    if not tensors or tensors[0].dim() == 0:
        raise InputError("inputs: expected a tensor, or a mapping of keywords to tensors, with a first axis of samples")
    count = len(tensors[0])
    if count == 0:
        raise InputError(f"inputs: shape {list(tensors[0].shape)} holds no sample")

    def part(value: Any, i: int) -> Any:
        batched = isinstance(value, torch.Tensor) and value.dim() > 0 and len(value) == count
        return value[i : i + 1] if batched else value

    for i in range(count):
        yield i, _caller(model, tuple(part(a, i) for a in args), {k: part(v, i) for k, v in keywords.items()})


def _caller(model: nn.Module, args: tuple[Any, ...], keywords: dict[str, Any]) -> Callable[[], Any]:
    # a cache of keys and values would be another input of the layers
    if "use_cache" in inspect.signature(model.forward).parameters:
        keywords = {**keywords, "use_cache": False}
    return lambda: model(*args, **keywords)


@contextlib.contextmanager
def _plain_modules(model: nn.Module) -> Iterator[None]:
    """Inside, a transformers model has attention and experts that torch differentiates twice, in f64 too."""
    config = getattr(model, "config", None)
    with contextlib.ExitStack() as stack:
        for part, plain in [("attn", ("eager", "sdpa")), ("experts", ("eager",))]:
            chosen = getattr(config, f"_{part}_implementation", None)
            switch = getattr(model, f"set_{part}_implementation", None)
            if chosen is not None and chosen not in plain and switch is not None:
                switch("eager")
                stack.callback(switch, chosen)
        yield

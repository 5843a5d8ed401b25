"""Every attention layer of a model in memory: audit."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import torch
from torch import nn

from lipscope.errors import InputError
from lipscope.jacobian_record import LocalOptions
from lipscope.records import Record, Records
from lipscope.torch.function import check_evaluation, measure_at, sha256_of
from lipscope.torch.kernels import kernel_records, why_not_known
from lipscope.torch.layers import Layer, LayerRun, find_layers, runs_of
from lipscope.torch.maps import (
    Map,
    attention_map,
    block_map,
    model_map,
    number_of_heads,
    output_projection,
    residual_map,
)
from lipscope.torch.model_inputs import ModelInput, lengths_of, model_inputs, rows_of_ids
from lipscope.torch.plain_kernels import plain_kernels
from lipscope.torch.widened import widened

MAPS = ("core", "attn", "residual", "block", "model")


def audit(
    model: nn.Module,
    tokenizer: Any = None,
    text: str | None = None,
    *,
    input_ids: Any = None,
    inputs: Any = None,
    maps: str | Sequence[str] = ("attn",),
    heads: str | Sequence[int] = "each",
    layers: str | Sequence[int] = "all",
    lengths: Sequence[int] | None = None,
    samples: int = 1,
    offset: int = 0,
    dtype: str = "f32",
    norm: str = "2",
    enclose: float | Literal["none"] | None = None,
    tolerance: float = 1e-5,
    max_steps: int = 300,
    delta: float = 1e-10,
    seed: int = 0,
    threads: int = 0,
    kernels: str = "auto",
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
        heads: "each", "all" together, or numbers; of maps other than attn and core all together.
        layers: "all", or numbers in the order in which the model runs them.
        lengths: Lengths of the windows of the ids. By default one: all of them.
        samples: Windows of each length, one after another, none overlapping.
        offset: Ids that are skipped.
        dtype: Of the pass to the layers' inputs: "f32" (the model's own precision) or "f64".
        norm, enclose, tolerance, max_steps, delta, seed, threads: As in local_constant.
        kernels: "auto": lipscope's own for the models that the program reads (all but ViT) at
            token ids, autograd for all others; or "autograd". A record says which
            (`parameters["operator"]`), and of autograd why (`details["why_autograd"]`).
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
    if kernels not in ("auto", "autograd"):
        raise InputError(f"kernels: {kernels!r}; expected 'auto' or 'autograd'")
    if dtype not in ("f32", "f64"):
        raise InputError(f"dtype: {dtype!r}; expected 'f32' or 'f64'")
    given = list(model_inputs(model, tokenizer, text, input_ids, inputs, lengths, samples, offset))
    found = find_layers(model, attention)
    weights = sha256_of(model)
    why_autograd = "asked for"
    if kernels == "auto":
        why_autograd = "inputs are not token ids" if inputs is not None else why_not_known(model) or ""
        if not why_autograd:
            rows = rows_of_ids(tokenizer, text, input_ids)
            windows = lengths_of(rows, lengths, samples, offset)
            try:
                return Records(
                    kernel_records(
                        model, weights, rows, windows, samples, offset,
                        maps=wanted, heads=heads, layers=layers, dtype=dtype, options=options,
                    )
                )  # fmt: skip
            except InputError as error:
                why_autograd = str(error)
    records: list[Record] = []
    with _plain_modules(model):
        for one in given:
            here = _Sample(model, weights, one, found, dtype, why_autograd)
            for name in wanted:
                records += here.measure(name, heads, layers, num_heads, options)
    return Records(records)


class _Sample:
    """The model at one input: the layers as they ran, in the model's precision and in f64."""

    def __init__(
        self, model: nn.Module, weights: str, given: ModelInput, layers: Sequence[Layer], dtype: str, why: str
    ) -> None:
        self._model, self._weights, self._given, self._why = model, weights, given, why
        with torch.no_grad(), plain_kernels():
            self._runs = runs_of(layers, given.run)
            try:
                self._wide = runs_of(layers, widened(given.run, torch.float64))
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
    ) -> Iterator[Record]:
        """The records of one map, layer by layer and head by head."""
        if name == "model":
            f, witness = (model_map(self._model, runs, self._given.run) for runs in (self._runs, self._wide))
            yield self._record(f, witness, self._points[0].block.hidden, options, map=name)
            return
        for i in _numbers(layers, "layers", len(self._runs)):
            both, point = (self._runs[i], self._wide[i]), self._points[i]
            layer = both[0].layer
            if name == "residual" or name == "block":
                f, witness = map(residual_map if name == "residual" else block_map, both)
                part = {"map": name, "layer": i, "details": {"module": layer.name}}
                yield self._record(f, witness, point.block.hidden, options, **part)
                continue
            count = num_heads or number_of_heads(layer.attention, getattr(self._model, "config", None))
            projection = output_projection(both[0].attention)
            for head in _heads(heads, count, both[0]):
                f, witness = (attention_map(r, projection, head, count, core=name == "core") for r in both)
                part = {"map": name, "layer": i, "details": {"module": layer.attention_name}}
                part["head"] = "all" if head is None else head
                yield self._record(f, witness, point.attention.hidden, options, **part)

    def _record(self, f: Map, witness: Map, x: torch.Tensor, options: LocalOptions, **fields: Any) -> Record:
        fields["details"] = {**fields.get("details", {}), "why_autograd": self._why}
        given = self._given.record()
        if given is not None:
            fields["input"] = given
        return measure_at(
            f,
            x,
            options,
            own=self._own,
            witness=witness,
            command="measure",
            model=type(self._model).__name__,
            model_sha256=self._weights,
            sample=self._given.sample,
            **fields,
        )


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

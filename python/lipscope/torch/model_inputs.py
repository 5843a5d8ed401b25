"""What a model is called with, one sample at a time: windows of token ids, or anything else."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from lipscope.errors import InputError
from lipscope.torch.widened import short_name


@dataclass(frozen=True)
class ModelInput:
    """One sample."""

    sample: int
    run: Callable[[], Any]  # the model at this input
    ids: torch.Tensor | None  # where it is token ids and nothing else
    offset: int | None  # where they stand in the text

    def record(self) -> dict[str, Any] | None:
        """As `input` of a record has it; None where it is not token ids."""
        if self.ids is None:
            return None
        text = " ".join(str(i) for i in self.ids.tolist())
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        return {"from": "ids", "name": None, "sha256": sha256, "offset": self.offset}


def model_inputs(
    model: nn.Module,
    tokenizer: Any,
    text: str | None,
    input_ids: Any,
    inputs: Any,
    lengths: Sequence[int] | None,
    samples: int,
    offset: int,
) -> Iterator[ModelInput]:
    """The samples that the arguments of audit mean."""
    given = [n for n, v in [("text", text), ("input_ids", input_ids), ("inputs", inputs)] if v is not None]
    if len(given) != 1:
        raise InputError(
            f"expected one of text (with tokenizer), input_ids and inputs, got {' and '.join(given) or 'none'}"
        )
    if inputs is not None:
        if lengths is not None or offset != 0 or samples != 1:
            raise InputError("lengths, samples and offset: choose windows of token ids, not of inputs")
        yield from _batch(model, inputs)
        return
    device = next(model.parameters()).device
    rows = rows_of_ids(tokenizer, text, input_ids)
    for sample, at, ids in _windows(rows, lengths_of(rows, lengths, samples, offset), samples, offset):
        yield ModelInput(sample, _caller(model, (), {"input_ids": ids[None].to(device)}), ids, at)


def rows_of_ids(tokenizer: Any, text: str | None, input_ids: Any) -> torch.Tensor:
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


def lengths_of(rows: torch.Tensor, lengths: Sequence[int] | None, samples: int, offset: int) -> list[int]:
    """The lengths of the windows, if the rows are long enough for them; by default as long as can be."""
    if samples < 1 or offset < 0:
        raise InputError(f"samples: {samples}, offset: {offset}; expected at least 1 and 0")
    there = rows.shape[1]
    chosen = [(there - offset) // samples] if lengths is None else list(lengths)
    needed = offset + samples * sum(chosen)
    if any(n < 1 for n in chosen) or needed > there:
        raise InputError(
            f"lengths: {samples} windows of each of {chosen} tokens after {offset} need {needed} ids, and there "
            f"are {there}"
        )
    if len(set(chosen)) < len(chosen):
        raise InputError(f"lengths: {chosen}; one of them stands twice")
    return chosen


def _windows(
    rows: torch.Tensor, lengths: Sequence[int], samples: int, offset: int
) -> Iterator[tuple[int, int, torch.Tensor]]:
    """For each length so many windows, one after another, none overlapping; of each row."""
    for r, row in enumerate(rows):
        at = offset
        for n in lengths:
            for i in range(samples):
                yield r * samples + i, at, row[at : at + n]
                at += n


def _batch(model: nn.Module, inputs: Any) -> Iterator[ModelInput]:
    keywords = dict(inputs) if isinstance(inputs, Mapping) else {}
    args = () if keywords else tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    tensors = [v for v in [*args, *keywords.values()] if isinstance(v, torch.Tensor)]
    if not tensors or tensors[0].dim() == 0:
        raise InputError(
            "inputs: expected a tensor, or a mapping of keywords to tensors, with a first axis of samples"
        )
    count = len(tensors[0])
    if count == 0:
        raise InputError(f"inputs: shape {list(tensors[0].shape)} holds no sample")

    def part(value: Any, i: int) -> Any:
        batched = isinstance(value, torch.Tensor) and value.dim() > 0 and len(value) == count
        return value[i : i + 1] if batched else value

    for i in range(count):
        run = _caller(model, tuple(part(a, i) for a in args), {k: part(v, i) for k, v in keywords.items()})
        yield ModelInput(i, run, None, None)


def _caller(model: nn.Module, args: tuple[Any, ...], keywords: dict[str, Any]) -> Callable[[], Any]:
    # a cache of keys and values would be another input of the layers
    if "use_cache" in inspect.signature(model.forward).parameters:
        keywords = {**keywords, "use_cache": False}
    return lambda: model(*args, **keywords)

"""lipscope's own kernels for the models of transformers that the program reads.

They prove a bound from above for larger inputs as well. They read the weights where torch has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from lipscope import _core
from lipscope.jacobian_record import LocalOptions
from lipscope.records import Record, Records

# model_type, and where transformers has the modules
FAMILIES = {
    name: name
    for name in (
        "albert", "bert", "camembert", "distilbert", "electra", "gemma", "gpt2", "gpt_neox", "gptj", "granite", "llama",
        "mistral", "modernbert", "mpnet", "olmo", "olmo2", "opt", "phi", "phi3", "qwen2", "qwen3", "roberta", "smollm3",
        "stablelm",
    )
} | {"gemma3_text": "gemma3", "xlm-roberta": "xlm_roberta"}  # fmt: skip


def why_not_known(model: nn.Module) -> str | None:
    """Why the kernels do not compute what this model computes; None where they do.

    They know a class by its name: every module must be transformers' own or torch's, and run its own
    forward.
    """
    family = getattr(getattr(model, "config", None), "model_type", None)
    if family not in FAMILIES:
        return f"model type {family}" if family else f"{type(model).__name__} is no model of transformers"
    homes = (f"transformers.models.{FAMILIES[family]}.", "transformers.activations", "transformers.pytorch_utils", "torch.nn.")
    for name, module in model.named_modules():
        if not type(module).__module__.startswith(homes):
            return f"{name or 'the model'} is a {type(module).__module__}.{type(module).__name__}"
        if "forward" in module.__dict__:
            return f"{name or 'the model'} has another forward"
        if any(not getattr(h, "__module__", "").startswith("transformers.") for h in _hooks(module)):
            return f"{name or 'the model'} has a hook"
    for name, parameter in model.named_parameters():
        if parameter.dtype not in (torch.float32, torch.bfloat16, torch.float16):
            return f"{name} is {parameter.dtype}"
    return None


def _hooks(module: nn.Module) -> list[Any]:
    return [*module._forward_hooks.values(), *module._forward_pre_hooks.values()]


def kernel_records(
    model: nn.Module,
    weights: str,
    rows: torch.Tensor,
    lengths: Sequence[int],
    samples: int,
    offset: int,
    *,
    maps: Sequence[str],
    heads: str | Sequence[int],
    layers: str | Sequence[int],
    dtype: str,
    options: LocalOptions,
) -> list[Record]:
    """The records of an audit, in its order. InputError for a model that the kernels refuse."""
    from lipscope.commands import measure

    transformer = _core.transformer(_config(model), _arrays(model), weights)
    records: list[tuple[tuple[int, ...], Record]] = []
    for r, row in enumerate(rows):
        for m, name in enumerate(maps):
            found = measure(
                transformer,
                ids=row,
                lengths=lengths,
                samples=samples,
                offset=offset,
                map=name,
                heads=heads if name in ("attn", "core") else "all",
                layers="all" if name == "model" else layers,
                dtype=dtype,
                norm=options.norm,
                tolerance=options.tolerance,
                max_steps=options.max_steps,
                enclose=options.enclose,
                delta=options.delta,
                seed=options.seed,
                threads=options.threads,
                progress=False,
            )
            for i, one in enumerate(found if isinstance(found, Records) else [found]):
                window = list(lengths).index(one.n) * samples + one.sample
                records.append(((r, window, m, i), _renamed(one, model, r * samples + one.sample)))
    return [record for _, record in sorted(records, key=lambda pair: pair[0])]


def _config(model: nn.Module) -> str:
    """What config.json would be."""
    config: Any = model.config
    return str(config.to_json_string())


def _arrays(model: nn.Module) -> dict[str, torch.Tensor]:
    """The tensors by their names; a copy is made of those that are not on the CPU row by row."""
    tensors = model.state_dict().items()
    return {name: tensor.cpu().contiguous() for name, tensor in tensors if tensor.is_floating_point()}


def _renamed(record: Record, model: nn.Module, sample: int) -> Record:
    fields = record.to_dict()
    fields["model"], fields["sample"] = type(model).__name__, sample
    fields["parameters"] = {**(fields.get("parameters") or {}), "operator": "lipscope"}
    direction: Any = None if record.direction is None else torch.from_numpy(record.direction)
    return Record(fields, direction, record.x)

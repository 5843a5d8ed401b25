"""Tokenizers against Hugging Face's `tokenizers`: the same ids for texts that are hard to cut.

Small tokenizers in the styles of many models are trained here. Real ones are taken from the folders (each with a
tokenizer.json) of the folder that LIPSCOPE_TOKENIZERS names, and LIPSCOPE_TOKENIZER_TEXTS is the number of texts.
The comparison itself is a test of the program text_test, beside lipscope in the build.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest

tokenizers = pytest.importorskip("tokenizers")

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "text"))
COUNT = int(os.environ.get("LIPSCOPE_TOKENIZER_TEXTS", "2000"))


def text_test() -> pathlib.Path:
    program = pathlib.Path(os.environ.get("LIPSCOPE_PROGRAM", ROOT / "build/release/lipscope"))
    found = program.parent / "tests" / "text_test"
    if not found.exists():
        pytest.skip(f"no {found}")
    return found


def write_case(folder: pathlib.Path, name: str, tokenizer: pathlib.Path, made: Any, texts: list[str]) -> None:
    """One file for text_test: the folder of a tokenizer, texts and their ids."""
    from tokenizer_styles import ids_of

    made.no_truncation()
    made.no_padding()
    rows = [{"text": text, "ids": ids_of(made, text)} for text in texts]
    file = folder / f"{name.replace(' ', '_').replace(',', '')}.json"
    file.write_text(json.dumps({"name": name, "folder": str(tokenizer), "texts": rows}))


def compare(cases: pathlib.Path) -> str:
    """What text_test says of a folder of cases; it must agree with all."""
    run = subprocess.run([text_test(), "--gtest_filter=HuggingFace.HasTheSameIdsInTheCasesOfAFolder"],
                         env={**os.environ, "LIPSCOPE_TOKENIZER_CASES": str(cases)}, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-4000:]
    return run.stdout


def plain_text() -> str:
    return "\n".join((ROOT / name).read_text() for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"))


def test_trained_tokenizers_of_every_style_have_the_same_ids(tmp_path: pathlib.Path) -> None:
    from tokenizer_styles import nasty_texts, styles

    source = plain_text()
    cases = tmp_path / "cases"
    cases.mkdir()
    texts = nasty_texts(COUNT, source)
    names = []
    for name, made in styles([source[i:i + 1000] for i in range(0, len(source), 1000)], 2000):
        folder = tmp_path / name.replace(" ", "_")
        folder.mkdir()
        made.save(str(folder / "tokenizer.json"))
        write_case(cases, name, folder, made, texts)
        names.append(name)
    said = compare(cases)
    for name in names:
        assert f"{name}: {COUNT} of {COUNT} texts" in said


def test_real_tokenizers_have_the_same_ids(tmp_path: pathlib.Path) -> None:
    from tokenizer_styles import nasty_texts

    named = os.environ.get("LIPSCOPE_TOKENIZERS")
    if not named:
        pytest.skip("LIPSCOPE_TOKENIZERS names no folder")
    texts = nasty_texts(COUNT, plain_text())
    files = sorted(pathlib.Path(named).glob("*/tokenizer.json"))
    assert files
    for file in files:
        write_case(tmp_path, file.parent.name, file.parent, tokenizers.Tokenizer.from_file(str(file)), texts)
    compare(tmp_path)

"""Real models: lipscope beside Hugging Face's modules in f64, by tests/model/against_torch.py.

The folders are those of the folder that LIPSCOPE_MODELS names, or of models/, where tools/get-model writes them. The
first and the last layer of each are compared; the script by itself compares all.
"""

import json
import os
import pathlib
import subprocess
import sys

import pytest

for needed in ("torch", "transformers", "tokenizers", "scipy"):
    pytest.importorskip(needed)

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = pathlib.Path(os.environ.get("LIPSCOPE_MODELS", ROOT / "models"))
FOLDERS = sorted(path.parent for path in MODELS.glob("*/config.json"))


def text():
    book = MODELS / "moby-dick" / "moby-dick.txt"
    return book if book.exists() else ROOT / "README.md"


@pytest.mark.skipif(not FOLDERS, reason=f"no models in {MODELS}: tools/get-model NAME fetches one")
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_first_and_the_last_layer_have_the_constants_of_torch(folder):
    program = os.environ.get("LIPSCOPE_PROGRAM", ROOT / "build/release/lipscope")
    last = json.loads((folder / "config.json").read_text())["num_hidden_layers"] - 1
    done = subprocess.run(
        [sys.executable, ROOT / "tests" / "model" / "against_torch.py", program, "--text", text(),
         "--layers", f"0,{last}", folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert done.stdout.count("residual") == 2

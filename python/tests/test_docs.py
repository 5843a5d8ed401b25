"""The sessions of the documents and docstrings run, and say what they say there."""

import doctest
import importlib
import json
import os
import pathlib
import subprocess
import sys

import lipscope
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("page", ["docs/python.md"])
def test_sessions_of_a_page(page):
    found = doctest.testfile(str(ROOT / page), module_relative=False, optionflags=FLAGS)
    assert found.attempted > 10 and found.failed == 0


@pytest.mark.parametrize("name", ["attention", "operators"])
def test_sessions_of_docstrings(name):
    found = doctest.testmod(importlib.import_module(f"lipscope.{name}"), optionflags=FLAGS)
    assert found.attempted > 0 and found.failed == 0


def test_the_readme_shows_code_that_runs():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    code = text.split("```python\n")[1].split("```")[0]
    import numpy as np

    rng = np.random.default_rng(0)
    names = {"x": rng.standard_normal((16, 12))}
    names |= {f"w{name}": 0.3 * rng.standard_normal((12, 12)) for name in "qkvo"}
    exec(code, names)
    assert names["m"].lower <= names["m"].upper_whp


def test_the_pool_of_the_cluster_page_runs(bert, tmp_path):
    text = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    (tmp_path / "audit.py").write_text(text.split("```python\n")[1].split("```")[0])
    (tmp_path / "MODEL_DIR").symlink_to(bert)
    (tmp_path / "alice29.txt").write_text("the whale a sea b c d e f g the sea " * 40)
    package = pathlib.Path(lipscope.__file__).parents[1]
    subprocess.run([sys.executable, "audit.py"], cwd=tmp_path, check=True, env={**os.environ, "PYTHONPATH": str(package)})
    records = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert len(records) == 2 * 4 * 2  # lengths, windows, layers


@pytest.mark.parametrize("name, needs", [("in_python", []), ("lipschitz_models", ["torch", "sklearn"])])
def test_a_notebook_runs(name, needs, monkeypatch):
    import matplotlib

    for package in needs:
        pytest.importorskip(package)
    matplotlib.use("Agg")
    monkeypatch.setenv("LIPSCOPE_NOTEBOOK_STEPS", "2")
    notebook = json.loads((ROOT / "examples" / f"{name}.ipynb").read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    printing = [cell for cell in cells if not "".join(cell["source"]).startswith(("import", "class"))]
    assert printing and all(cell["outputs"] for cell in printing), "the notebook was not executed"
    names: dict[str, object] = {}
    for cell in cells:
        exec("".join(cell["source"]), names)

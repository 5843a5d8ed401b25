"""The attack of `lipscope certify` beside an independent one in PyTorch (bench/peers/certify_peer.py)."""

import argparse
import json
import pathlib
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "peers"))

import certify_peer  # noqa: E402

MODELS = {
    "post-norm l2": ["--model", "l2", "--norm", "post"],
    "pre-norm dot": ["--model", "dot", "--norm", "pre"],
    "l2 under a constant": ["--model", "l2", "--norm", "none", "--max-lipschitz", "3"],
}


@pytest.mark.parametrize("model", MODELS)
def test_no_projected_gradient_ascent_with_restarts_comes_nearer(tmp_path, program, model):
    text = tmp_path / "text.txt"
    text.write_text("".join(f"a river runs by {('the hill', 'a mill', 'the town')[i * i % 3]}. " for i in range(200)))
    program("train", text, "--out", tmp_path / "run", *MODELS[model], "--layers", 2, "--width", 16, "--heads", 2,
            "--context", 12, "--batch", 8, "--steps", 60, "--lr", 0.005, "--warmup", 5, "--eval-every", 60,
            "--measure", 0, "--threads", 1, "--quiet")  # fmt: skip
    lines = program("certify", tmp_path / "run", "--text", text, "--split", "test", "--positions", 24, "--json")
    records = [json.loads(line) for line in lines.splitlines()]
    options = argparse.Namespace(restarts=4, steps=20, radii=8, radius=0.5, seed=0)
    found = certify_peer.attacked(records, options)
    assert len(found) == 24
    for r in records:
        assert r["lower"] <= r["upper"] <= 1.005 * found[r["sample"]], r

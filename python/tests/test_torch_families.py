"""Every family of transformers, made freshly by transformers: lipscope.measure and dense Jacobians by autograd in f64."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import lipscope  # noqa: E402
import lipscope.torch as lt  # noqa: E402

GOLDEN = pathlib.Path(__file__).parents[2] / "tests" / "model" / "golden"
CASES = sorted(path.stem for path in GOLDEN.glob("*.json"))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Folders of all families. Another process makes them: there f32 means f64."""
    made = tmp_path_factory.mktemp("families")
    # one thread: on a busy machine two wait for each other for minutes
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, GOLDEN / "families.py", "--fresh", "7", made], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return made


def test_there_is_a_golden_file_for_every_case(folders):
    assert sorted(path.name for path in folders.iterdir()) == CASES and len(CASES) >= 30


@pytest.mark.parametrize("case", [c for c in CASES if "ids" in json.loads((GOLDEN / f"{c}.json").read_text())])
def test_models_in_memory_are_measured_by_the_kernels_as_by_autograd(case):
    """Of every family, with its own windows: the masks are those of transformers' modules."""
    golden = json.loads((GOLDEN / f"{case}.json").read_text())
    config = transformers.AutoConfig.for_model(**golden["config"], attn_implementation="eager")
    torch.manual_seed(3)
    model = getattr(transformers, golden["config"]["architectures"][0])(config).float().eval()
    with torch.no_grad():  # gains 1 and biases 0 would hide mistakes
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    given = dict(input_ids=torch.tensor(golden["ids"]), maps=("attn", "block"), heads="all", dtype="f64")
    found, expected = lt.audit(model, **given), lt.audit(model, **given, kernels="autograd")
    assert len(found) == len(expected) == 2 * golden["config"].get("num_hidden_layers", 2)
    for a, b in zip(found, expected):
        assert (a.parameters["operator"], b.parameters["operator"]) == ("lipscope", "autograd")
        assert a.lower == pytest.approx(b.lower, rel=1e-6) and a.upper >= a.lower
    if case.endswith("_window"):
        assert any("window" in a.mask for a in found)


@pytest.mark.parametrize("case", CASES)
def test_every_map_and_head_has_the_constant_of_the_dense_jacobian(folders, tmp_path, case):
    golden = json.loads((folders / case / "golden.json").read_text())
    given = dict(dtype="f64", tolerance=1e-8)
    if "embedded" in golden:
        given |= dict(embedded=np.array(golden["embedded"]))
    else:
        ids = tmp_path / "ids.txt"
        ids.write_text(" ".join(map(str, golden["ids"])))
        given |= dict(ids=ids, lengths=[len(golden["ids"])], samples=1)
    if "padding" in golden:
        given |= dict(padding=tuple(golden["padding"]))
    expected = {(c["map"], c.get("layer"), c.get("head", "all")): c["norms"][0] for c in golden["constants"]}
    found = {}
    for name in ("core", "attn", "residual", "block", "model"):
        for heads in ("all", "each") if name == "attn" else ("all",):
            more = {} if name == "model" else {"heads": heads, "certificate": "all"}
            records = lipscope.measure(folders / case, map=name, **given, **more)
            for r in records if isinstance(records, lipscope.Records) else [records]:
                found[name, r.layer, "all" if r.head is None else r.head] = r
    assert {key for key in found} == set(expected)
    for key, value in expected.items():
        assert found[key].lower == pytest.approx(value, rel=1e-6), key
        assert found[key].upper >= value * (1 - 1e-9), key
        if key[0] != "model":
            proved = found[key].details["certificates"]
            assert {"split_paths", "token_pairs"} <= set(proved) or key[0] in ("residual", "block"), key
            assert proved and all(above >= value * (1 - 1e-9) for above in proved.values()), key

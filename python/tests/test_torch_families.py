"""Every family of transformers, made freshly by transformers: lipscope.measure and dense Jacobians by autograd in f64."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import lipscope  # noqa: E402

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


@pytest.mark.parametrize("case", CASES)
def test_every_map_and_head_has_the_constant_of_the_dense_jacobian(folders, tmp_path, case):
    golden = json.loads((folders / case / "golden.json").read_text())
    ids = tmp_path / "ids.txt"
    ids.write_text(" ".join(map(str, golden["ids"])))
    given = dict(ids=ids, lengths=[len(golden["ids"])], samples=1, dtype="f64", tolerance=1e-8)
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

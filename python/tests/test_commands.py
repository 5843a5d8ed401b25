"""The commands say in Python what the program says."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import lipscope
from conftest import write_safetensors

# what differs from run to run
TIMES = ("seconds", "upper_seconds", "input_seconds")


def without_times(fields):
    # nor is the commit compared: whoever works on one of the two builds it alone
    fields = {k: v for k, v in fields.items() if k not in (*TIMES, "command_line", "machine", "commit")}
    if isinstance(fields.get("details"), dict):
        fields["details"] = {k: v for k, v in fields["details"].items() if k not in TIMES}
    return fields


def same(records, lines):
    """Python's records and the program's lines, bit for bit."""
    rows = [records] if isinstance(records, lipscope.Record) else [*records, *records.fits]
    theirs = [without_times(json.loads(line)) for line in lines.splitlines()]
    assert [without_times(r.to_dict()) for r in rows] == theirs
    assert rows


def test_measure_of_a_folder_equals_the_program_bit_for_bit(bert, program):
    text = bert / "text.txt"
    found = lipscope.measure(bert, text=text, lengths=[4, 8, 16, 40], samples=2, heads="each")
    same(found, program("measure", bert, "--text", text, "--lengths", "4,8,16,40", "--samples", 2, "--heads", "each", "--json"))
    assert len(found) == 2 * 2 * 4 * 2 and "reacts most" in found.finding
    swept = lipscope.measure(bert, text=text, lengths="2:20:2", samples=1)
    same(swept, program("measure", bert, "--text", text, "--lengths", "2:20:2", "--samples", 1, "--json"))
    assert swept.fits


@pytest.mark.parametrize("map", ["core", "residual", "block", "model"])
def test_every_map_equals_the_program(bert, program, map):
    text = bert / "text.txt"
    found = lipscope.measure(bert, text=text, lengths="6", samples=1, map=map)
    same(found, program("measure", bert, "--text", text, "--lengths", "6", "--samples", 1, "--map", map, "--json"))


def test_measure_with_an_enclosure_equals_the_program(program):
    found = lipscope.measure(random="d=32,heads=2,scale=0.2", length=40, enclose=1.1, seed=3)
    same(found, program("measure", "--random", "d=32,heads=2,scale=0.2", "--length", 40, "--enclose", 1.1, "--seed", 3, "--json"))
    assert isinstance(found, lipscope.Record)
    assert found.lower <= found.upper_whp <= 1.1 * found.lower


def test_measure_without_an_enclosure_equals_the_program(program):
    found = lipscope.measure(random="d=32,heads=2,scale=0.2", length=40, enclose="none", certificate="none")
    same(found, program("measure", "--random", "d=32,heads=2,scale=0.2", "--length", 40, "--enclose", "none",
                        "--certificate", "none", "--json"))  # fmt: skip
    assert found.upper_whp is None


def test_other_commands_equal_the_program(program, tmp_path):
    random = "d=8,heads=2,scale=0.5"
    same(lipscope.bound(random=random, lengths=[4, 8], radius=2), program("bound", "--random", random, "--lengths", "4,8", "--radius", 2, "--json"))
    same(lipscope.meanfield(random=random, length=5, duplicate=2), program("meanfield", "--random", random, "--length", 5, "--duplicate", 2, "--json"))
    same(lipscope.invert(random=random, length=6, scale=0.9), program("invert", "--random", random, "--length", 6, "--scale", 0.9, "--json"))
    same(lipscope.reproduce("mass-splitting"), program("reproduce", "mass-splitting", "--json"))
    assert lipscope.wasserstein is lipscope.meanfield


def test_finished_runs_are_shown_as_the_program_shows_them(program, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("".join(f"the river {i % 17} runs by hill {i % 20}. " for i in range(400)))
    runs = [tmp_path / name for name in ("one", "two")]
    for seed, run in enumerate(runs):
        lipscope.train(
            text, run, model="position", layers=1, width=8, heads=2, context=8, steps=2, eval_every=1, batch=2,
            norm="none", positions="none", measure=0, singular_values="soft", longest_token=4, max_lipschitz=2,
            promise="token", seed=seed, threads=1, progress=False,
        )  # fmt: skip
    found = lipscope.reproduce("newhouse-shakespeare", text=text, runs=runs, threads=1, progress=False)
    same(found, program("reproduce", "newhouse-shakespeare", "--text", text, "--runs", *runs, "--threads", 1, "--json"))

    def shown(records):
        here = [r for r in records if r.parameters.get("series") == "position heads"]
        return [r.value for r in here if r.parameters["experiment"] == "newhouse-shakespeare"]

    assert len(shown(found)) == 2
    # one folder may stand alone, as a path or as a string
    for one in (runs[1], str(runs[1])):
        alone = lipscope.reproduce("newhouse-shakespeare", text=text, runs=one, threads=1, progress=False)
        assert shown(alone) == shown(found)[1:]
    with pytest.raises(lipscope.InputError, match="runs.*mass-splitting|mass-splitting.*runs"):
        lipscope.reproduce("mass-splitting", runs=runs, progress=False)


def test_masses_and_positions_may_be_arrays(program, tmp_path, layer):
    rng = np.random.default_rng(2)
    x = rng.standard_normal((4, 12)).astype(np.float32)
    mass, position = np.array([0.5, 0.25, 0.125, 0.125]), np.array([0.0, 1.0, 1.0, 2.0], np.float32)
    parts = {name: array.astype(np.float32) for name, array in layer._arrays.items()}
    for more in ({}, {"mass": mass}, {"mass": mass, "position": position}):
        write_safetensors(tmp_path / "layer.safetensors", {**parts, "x": x, **more})
        lines = program("meanfield", "--weights", tmp_path / "layer.safetensors", "--num-heads", 3, "--json").splitlines()
        held = lipscope.Attention(**parts, heads=3, mask="causal" if "position" in more else "none")
        found = lipscope.meanfield(held, x, **more)
        theirs = [json.loads(line) for line in lines]
        assert [(r.lower, r.norm) for r in found] == [(r["lower"], r["norm"]) for r in theirs]
        for name in ("mass_sha256", "position_sha256"):
            assert [r.parameters.get(name) for r in found] == [r["parameters"].get(name) for r in theirs]


@pytest.mark.parametrize(
    ("more", "error", "words"),
    [
        ({"mass": np.ones(3) / 3}, lipscope.InputError, "mass: 3 masses for 4 tokens"),
        ({"mass": np.ones(4)}, lipscope.InputError, "mass: the masses sum to 4, not to one"),
        ({"mass": np.array([0.5, 0.5, np.nan, 0.0])}, ValueError, "mass: entry 2 is nan"),
        ({"mass": np.ones((4, 1)) / 4}, ValueError, r"mass: expected 1 axis, got 2 in shape \[4, 1\]"),
        ({"mass": [0.25] * 4}, TypeError, "mass: expected an array .* got list"),
        ({"position": np.array([0.0, 2.0, 1.0, 3.0])}, lipscope.InputError, "position"),
    ],
)
def test_bad_masses_and_positions_are_named(layer, more, error, words):
    with pytest.raises(error, match=words):
        lipscope.meanfield(layer, np.ones((4, 12)), **more)


@pytest.mark.parametrize("form", [list, np.array, tuple])
def test_ids_may_be_in_memory(bert, tmp_path, form):
    ids = [31, 32, 5, 31, 33, 6, 7, 31]
    (tmp_path / "ids.txt").write_text(" ".join(map(str, ids)))
    options = {"lengths": [3, 5], "samples": 1, "map": "block"}
    stored, held = (lipscope.measure(bert, ids=given, **options) for given in (tmp_path / "ids.txt", form(ids)))
    assert [r.lower for r in held] == [r.lower for r in stored]
    assert [r.input["sha256"] for r in held] == [r.input["sha256"] for r in stored]
    assert held[0].input["from"] == "ids" and held[0].input["name"] is None


def test_search_gives_the_best_with_its_tokens(program):
    random = "d=4,heads=1,scale=1"
    found = lipscope.search(random=random, length=4, radius=1.5, restarts=1, budget=0)
    lines = program("search", "--random", random, "--length", 4, "--radius", 1.5, "--restarts", 1, "--budget", 0, "--json")
    best = [line for line in lines.splitlines() if json.loads(line)["parameters"]["of"] == "best"]
    same(found, "\n".join(best))
    assert found.x.shape == (4, 4) and np.linalg.norm(found.x, axis=1).max() <= 1.5 * (1 + 1e-9)
    again = lipscope.measure(random=random, input=found.x)
    assert again.lower == pytest.approx(found.lower, rel=1e-6)


def test_train_certify_and_recover(tmp_path, program):
    text = tmp_path / "text.txt"
    text.write_text("to be or not to be that is the question " * 60)
    run = lipscope.train(
        text, tmp_path / "run", invertible=True, layers=1, width=8, heads=2, context=16, batch=4, steps=4, eval_every=2,
        measure=8,
    )  # fmt: skip
    assert len(run) > 0 and run.finding
    certified = lipscope.certify(tmp_path / "run", text, positions=3)
    same(certified, program("certify", tmp_path / "run", "--text", text, "--positions", 3, "--json"))
    back = lipscope.invert(tmp_path / "run", text=text, length=16, samples=1)
    assert back.command == "invert"


def test_steps_say_what_their_products_were_made_of(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("the quiet river runs by the hill. " * 60)
    small = dict(
        layers=1, width=8, heads=2, context=8, batch=4, steps=4, eval_every=2, measure=0, threads=1, progress=False,
    )  # fmt: skip
    run = lipscope.train(text, tmp_path / "run", precision="bf16", **small)
    made = {d["products"] for d in (getattr(r, "details", {}) for r in run) if "products" in d}
    assert len(made) == 1 and made <= {"f32", "bf16 pairs", "bf16 tiles, one part"}
    with pytest.raises(lipscope.InputError, match="precision"):
        lipscope.train(text, tmp_path / "run", precision="full", resume=True, **small)
    with pytest.raises(ValueError, match="precision: 'nonsense' is none of full, high, bf16"):
        lipscope.train(text, tmp_path / "other", precision="nonsense", **small)


def test_a_promised_constant_is_kept_and_what_cannot_be_promised_is_refused(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("the quiet river runs by the hill. " * 60)
    promised = dict(
        model="position", layers=1, width=8, heads=2, context=8, mlp_width=8, norm="none", positions="none",
        residual="none", activation="max_min", head_bias=True, optimizer="muon", muon_lr=0.05, schedule="linear", warmup=0,
        singular_values="soft", longest_token=4.0, max_lipschitz=2.0, promise="token", steps=4, eval_every=4, measure=0,
        threads=1, progress=False,
    )  # fmt: skip
    run = lipscope.train(text, tmp_path / "run", **promised)
    kept = [r for r in run if r.upper_by == "stack_constant"]
    assert kept and all(r.norm == "token" and 1.9 < r.upper <= 2.0 for r in kept)
    theirs = {**promised, "model": "dot", "positions": "rotary", "activation": "gelu", "residual": "convex",
              "residual_share": 0.25, "matrix_limits": "newhouse25", "zero_outputs": True}  # fmt: skip
    run = lipscope.train(text, tmp_path / "theirs", **theirs)
    assert all(1.9 < r.upper <= 2.0 for r in run if r.upper_by == "stack_constant")
    with pytest.raises(lipscope.InputError, match="gelu"):
        lipscope.train(text, tmp_path / "no", **{**theirs, "activation": "max_min"})
    with pytest.raises(lipscope.InputError, match="give the longest token"):
        lipscope.train(text, tmp_path / "no", **{**promised, "model": "dot", "longest_token": None})
    with pytest.raises(ValueError, match="positions: 'far' is none of table, rotary, relative, none"):
        lipscope.train(text, tmp_path / "no", **{**promised, "positions": "far"})


def test_training_that_was_interrupted_goes_on(tmp_path):
    """Ends with the weights of a run that was not interrupted, to the last bit."""
    text = tmp_path / "text.txt"
    text.write_text("to be or not to be that is the question " * 60)
    size = {"layers": 1, "width": 8, "heads": 2, "context": 16, "batch": 4, "steps": 2000, "eval_every": 500, "measure": 8}
    lipscope.train(text, tmp_path / "whole", **size)
    program = (
        f"import lipscope, sys\ndef stop(done, *_):\n    if done >= 100: raise KeyboardInterrupt\n"
        f"try:\n    lipscope.train({str(text)!r}, {str(tmp_path / 'parts')!r}, progress=stop, **{size!r})\n"
        f"except KeyboardInterrupt:\n    sys.exit(7)\n"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 7
    assert not (tmp_path / "parts" / "model.safetensors").exists() or (
        (tmp_path / "parts" / "model.safetensors").read_bytes() != (tmp_path / "whole" / "model.safetensors").read_bytes()
    )
    lipscope.train(text, tmp_path / "parts", resume=True, **size)
    for name in ("model.safetensors", "config.json"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_one_input_is_a_record_and_several_are_a_sequence(bert):
    one = lipscope.measure(random="d=4,heads=1", length=3)
    assert isinstance(one, lipscope.Record)
    several = lipscope.measure(random="d=4,heads=1", lengths=range(2, 8, 2))
    assert isinstance(several, lipscope.Records) and [r.n for r in several] == [2, 4, 6]
    assert isinstance(several[1:], lipscope.Records) and len(several[1:]) == 2


def test_directions_are_kept_where_they_are_asked_for(bert):
    found = lipscope.measure(bert, text=bert / "text.txt", lengths=[4, 6], samples=2, directions=True, map="core")
    for record in found:
        layer = record.x.shape
        assert layer == (record.n, 16) and record.direction.shape == layer
        assert np.linalg.norm(record.direction) == pytest.approx(1)
    assert lipscope.measure(random="d=4,heads=1", length=3).direction is None


def test_out_and_resume(tmp_path, program):
    out = tmp_path / "audit.jsonl"
    first = lipscope.measure(random="d=8,heads=2", lengths=[3, 4], out=out)
    lines = out.read_text().splitlines()
    assert len(lines) == 2
    more = lipscope.measure(random="d=8,heads=2", lengths=[3, 4, 5], out=out, resume=True)
    assert [r.n for r in more] == [3, 4, 5] and first[0] == more[0]
    assert lipscope.read(out)[2].n == 5
    # a file of the program, and one that is none
    (tmp_path / "none.jsonl").write_text("{}\n")
    with pytest.raises(lipscope.InputError, match="line 1"):
        lipscope.read(tmp_path / "none.jsonl")


def test_a_table_fits_the_terminal_and_has_one_answer(bert, monkeypatch):
    found = lipscope.measure(bert, text=bert / "text.txt", lengths=[4, 6, 8], samples=2, heads="each")
    assert repr(found).count("Answer:") == 1
    monkeypatch.setenv("COLUMNS", "200")
    wide = repr(found)
    assert "residual" in wide and "status" in wide
    monkeypatch.setenv("COLUMNS", "60")
    narrow = repr(found).splitlines()
    assert max(len(line) for line in narrow) <= 60 and "lower" in "".join(narrow)


def test_records_as_a_table_a_page_and_a_picture(bert, tmp_path):
    import matplotlib

    matplotlib.use("Agg")
    found = lipscope.measure(bert, text=bert / "text.txt", lengths=[4, 6, 8], samples=1, heads="each")
    frame = found.to_pandas()
    assert len(frame) == len(found) and frame["lower"].max() == max(r.lower for r in found)
    assert "Answer:" in repr(found) and "lower" in repr(found) and "<table>" in found._repr_html_()
    found.report(tmp_path / "page.html")
    assert "<html" in (tmp_path / "page.html").read_text()
    found.report(tmp_path / "page.html")
    with pytest.raises(FileExistsError, match="no page"):
        found.report(bert / "config.json")
    found.save(tmp_path / "f.jsonl")
    with pytest.raises(FileExistsError):
        found.save(tmp_path / "f.jsonl")
    assert lipscope.read(tmp_path / "f.jsonl") == found
    assert found.plot().get_xlabel() == "head"
    assert lipscope.measure(random="d=8,heads=2", lengths=[4, 8, 16]).plot().get_xlabel() == "tokens n"
    assert "at most" in lipscope.measure(random="d=8,heads=2", length=4).plot().get_ylabel()


def test_a_record_does_not_change_and_names_near_fields():
    record = lipscope.measure(random="d=4,heads=1", length=3)
    with pytest.raises(AttributeError, match="did you mean lower"):
        record.lowr
    with pytest.raises(AttributeError, match="does not change"):
        record.lower = 1.0


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: lipscope.measure("no-such-folder", text="t"), lipscope.InputError, "no-such-folder"),
        (lambda: lipscope.measure(), lipscope.InputError, "where are the weights"),
        (lambda: lipscope.measure(random="d=4,heads=3", length=3), lipscope.InputError, "random d=4,heads=3"),
        (lambda: lipscope.measure(random="d=4,heads=1", length=0), lipscope.InputError, "lengths 0"),
        (lambda: lipscope.measure(random="d=4,heads=1", length=3, enclose=0.9), ValueError, "enclose: .* got 0.9"),
        (lambda: lipscope.measure(random="d=4,heads=1", length=3, enclose="nothing"), TypeError, "enclose: .* 'nothing'"),
        (lambda: lipscope.measure(random="d=4,heads=1", length=3, samples=0), ValueError, "samples: expected 1 or more, got 0"),
        (lambda: lipscope.measure(random="d=4,heads=1", length=3.5), TypeError, "lengths: expected a whole number, got 3.5"),
        (lambda: lipscope.measure(random="d=4,heads=1", length=3, norm="1"), lipscope.InputError, "norm"),
        (lambda: lipscope.measure(random="d=4,heads=1", input=np.zeros((2, 5))), lipscope.InputError, "5 features, the layer reads 4"),
        (lambda: lipscope.measure(random="d=4,heads=1", input=np.full((2, 4), np.nan)), ValueError, r"x: entry \[0, 0\] is nan"),
        (lambda: lipscope.measure(3), TypeError, "got int"),
        (lambda: lipscope.measure(random="bert", ids=[]), ValueError, "ids: expected at least one"),
        (lambda: lipscope.measure(random="bert", ids=[1.5]), TypeError, "ids: expected a whole number, got 1.5"),
        (lambda: lipscope.measure(random="bert", ids=3), TypeError, "ids: expected a file or whole numbers, got 3"),
        (lambda: lipscope.measure(random="bert", ids=[-1], length=1), ValueError, "ids: expected 0 or more, got -1"),
        (lambda: lipscope.measure(random="bert", ids=[40000], length=1), lipscope.InputError, "id 40000 .number 0. is not in"),
        (lambda: lipscope.measure(random="bert", ids=[4], text="t", length=1), lipscope.InputError, "text and ids are two"),
        (lambda: lipscope.search(random="d=4,heads=1", length=3), lipscope.InputError, "give radius"),
        (lambda: lipscope.measure(random="d=4,heads=1", lenght=3), TypeError, "lenght"),
    ],
)  # fmt: skip
def test_refusals_name_the_argument(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_progress_is_told_and_may_end_the_run():
    told = []
    lipscope.measure(random="d=64,heads=4", lengths=[64, 96, 128], threads=1, progress=lambda *p: told.append(p))
    assert told and all(done <= total == 3 for done, total, *_ in told)

    class Enough(Exception):
        pass

    def stop(*_):
        raise Enough

    begin = time.monotonic()
    with pytest.raises(Enough):
        lipscope.measure(random="d=256,heads=4", lengths=[512] * 20, tolerance=1e-12, enclose=1.001, progress=stop)
    assert time.monotonic() - begin < 20


def test_ctrl_c_ends_a_long_run_and_keeps_what_was_written(tmp_path):
    out = tmp_path / "audit.jsonl"
    program = textwrap.dedent(f"""
        import lipscope
        try:
            lipscope.measure(random="d=16,heads=4", lengths=[*range(2, 32), *range(3000, 3050)], enclose=1.001,
                             out={str(out)!r})
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """)
    run = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (not out.exists() or not out.read_text()):
        time.sleep(0.05)
    time.sleep(0.5)
    run.send_signal(signal.SIGINT)
    begin = time.monotonic()
    said, _ = run.communicate(timeout=60)
    assert said == "interrupted\n" and run.returncode == 0
    # one second on an idle machine; tests run beside others
    assert time.monotonic() - begin < 10
    assert len(lipscope.read(out)) >= 1


def test_python_goes_on_while_the_core_works():
    """A second thread of Python counts while a measurement runs: it could not if the GIL were held."""
    counted = 0
    ended = threading.Event()

    def count():
        nonlocal counted
        while not ended.is_set():
            counted += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    before = counted
    lipscope.measure(random="d=128,heads=4", length=256, enclose=1.02, threads=1)
    during = counted - before
    ended.set()
    thread.join()
    assert during >= 20


def test_two_threads_measure_at_the_same_time():
    """Each waits, inside its measurement, until the other is inside its own."""
    barrier = threading.Barrier(2, timeout=60)
    met = []

    def told(*_):
        if threading.get_ident() not in met:
            met.append(threading.get_ident())
            barrier.wait()

    def work():
        lipscope.measure(random="d=128,heads=4", length=256, enclose=1.02, threads=1, progress=told)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(met) == 2 and not barrier.broken


def test_nothing_is_printed(capfd, bert):
    lipscope.measure(bert, text=bert / "text.txt", lengths=[4], samples=1)
    with pytest.raises(lipscope.InputError):
        lipscope.measure(bert, text="none")
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif("LIPSCOPE_SHARED" not in os.environ, reason="LIPSCOPE_SHARED names no folder of real models")
def test_minilm_equals_the_program(program):
    shared = os.environ["LIPSCOPE_SHARED"]
    model = os.path.join(shared, "models", "minilm-l6-v2-fp16")
    text = os.path.join(shared, "data", "moby_dick.txt")
    found = lipscope.measure(model, text=text, lengths=[8, 32], samples=1, heads="each", layers=[0, 3])
    same(found, program("measure", model, "--text", text, "--lengths", "8,32", "--samples", 1, "--heads", "each", "--layers", "0,3", "--json"))

"""measure(..., executor=E) on a process pool: the file of a run without it, whatever happens to the workers."""

import json
import multiprocessing
import os
import random
import warnings
from concurrent.futures import Executor, Future, ProcessPoolExecutor

import lipscope
import numpy as np
import pytest
from lipscope import executor as engine

ASKED = {"lengths": [5, 6, 7, 9], "samples": 6, "heads": "each"}


@pytest.fixture
def asked(bert, tmp_path):
    dice = random.Random(1)  # every window is another one
    text = tmp_path / "text.txt"
    text.write_text(" ".join(dice.choice(["the", "whale", "sea", *"abcdefgh"]) for _ in range(500)))
    return {"subject": bert, "text": text, **ASKED}


def pool(workers=2):
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))


def lines(path):
    """Of a file, all but times and machines."""
    found = []
    for line in open(path):
        record = json.loads(line)
        for field in ("seconds", "command_line", "machine", "build", "cpu", "line_sha256"):
            record.pop(field, None)
        if "details" in record:
            record["details"] = {k: v for k, v in record["details"].items() if not k.endswith("seconds")}
        found.append(json.dumps(record))
    return found


class Here(Executor):
    """Answers at once, in this process; `fails(questions)` may raise in place of it."""

    num_workers = 2

    def __init__(self, fails=lambda questions: None):
        self.fails, self.tasks = fails, []

    def submit(self, fn, /, options, questions, attempt):
        future = Future()
        self.tasks.append(questions)
        try:
            self.fails(questions)
            future.set_result(fn(options, questions, attempt))
        except Exception as e:
            future.set_exception(e)
        return future


def test_the_file_is_that_of_a_run_without_it(asked, tmp_path):
    single = lipscope.measure(**asked, out=tmp_path / "single.jsonl")
    with pool() as workers:
        found = lipscope.measure(**asked, out=tmp_path / "pool.jsonl", executor=workers)
    assert lines(tmp_path / "pool.jsonl") == lines(tmp_path / "single.jsonl")
    assert [r.lower for r in found] == [r.lower for r in single]
    assert [f.exponent for f in found.fits] == [f.exponent for f in single.fits]
    assert found.finding == single.finding
    assert not (tmp_path / "pool.jsonl.under-way").exists()


def test_a_second_call_finds_everything_and_asks_nobody(asked, tmp_path):
    lipscope.measure(**asked, out=tmp_path / "a.jsonl", executor=Here())
    before = (tmp_path / "a.jsonl").read_bytes()
    second = Here()
    lipscope.measure(**asked, out=tmp_path / "a.jsonl", executor=second, resume=True)
    assert second.tasks == []
    assert (tmp_path / "a.jsonl").read_bytes() == before


def test_weights_are_loaded_once_for_many_tasks(asked, monkeypatch):
    made = []

    class Counted(engine._core.MeasureWorker):
        def __init__(self, options):
            made.append(options)
            super().__init__(options)

    monkeypatch.setattr(engine._core, "MeasureWorker", Counted)
    monkeypatch.setattr(engine, "_idle", {})
    here = Here()
    lipscope.measure(**asked, executor=here)
    assert len(here.tasks) > 4
    assert len(made) == 1


def test_other_audits_in_the_file_stay(asked, tmp_path):
    out = tmp_path / "a.jsonl"
    lipscope.measure(**{**asked, "lengths": 4}, out=out)
    before = out.read_text()
    lipscope.measure(**asked, out=out, executor=Here(), resume=True)
    assert out.read_text().startswith(before)


class Deadly(Executor):
    """A pool in which the task with one question ends its worker."""

    num_workers = 2

    def __init__(self, pool, question):
        self.pool, self.question = pool, question

    def submit(self, fn, /, options, questions, attempt):
        if self.question in questions:
            return self.pool.submit(os._exit, 1)
        return self.pool.submit(fn, options, questions, attempt)


def test_a_pool_that_loses_a_worker_names_what_was_under_way_and_the_next_call_goes_on(asked, tmp_path):
    lipscope.measure(**asked, out=tmp_path / "single.jsonl")
    out = tmp_path / "pool.jsonl"
    with pool() as workers, pytest.raises(lipscope.WorkLost, match="resume=True goes on") as lost:
        lipscope.measure(**asked, out=out, executor=Deadly(workers, 29))
    assert any("layer 0, head 0, n = 6, sample 5" in name for name in lost.value.questions)
    kept = len(lines(out))
    assert 0 < kept < 96
    with pool() as workers, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        lipscope.measure(**asked, out=out, executor=workers, resume=True)
    assert any("which now come last" in str(w.message) for w in said)
    assert lines(out) == lines(tmp_path / "single.jsonl")


def test_a_question_that_kills_its_worker_is_named_while_the_rest_finishes(asked, tmp_path):
    lipscope.measure(**asked, out=tmp_path / "single.jsonl")

    class WorkerKilled(Exception):
        """What an engine says that goes on without the worker."""

    def dies(questions):
        if 17 in questions:
            raise WorkerKilled("the worker died")

    out = tmp_path / "a.jsonl"
    with pytest.raises(lipscope.WorkLost, match="1 of 96 questions") as lost:
        lipscope.measure(**asked, out=out, executor=Here(dies))
    assert len(lost.value.questions) == 1
    assert "layer 1, head 0, n = 5, sample 5" in lost.value.questions[0]
    assert "WorkerKilled" in lost.value.questions[0]
    expected = lines(tmp_path / "single.jsonl")
    records = [line for line in expected if '"command": "measure"' in line]
    got = [line for line in lines(out) if '"command": "measure"' in line]
    assert got == records[:17] + records[18:]
    # and when it is cured, the next call needs this one alone
    cured = Here()
    lipscope.measure(**asked, out=out, executor=cured, resume=True)
    assert cured.tasks == [[17]]
    assert lines(out) == expected


def test_a_worker_that_answers_something_else_is_found_out(asked):
    class Liar(Here):
        def submit(self, fn, /, options, questions, attempt):
            future = super().submit(fn, options, questions, attempt)
            record = json.loads(future.result()[0])
            record["lower"] *= 2
            wrong = Future()
            wrong.set_result([json.dumps(record)])
            return wrong

    with pytest.raises(lipscope.InputError, match="was changed"):
        lipscope.measure(**asked, executor=Liar())


def test_what_is_wrong_with_a_request_is_said_before_any_work(asked, layer):
    here = Here()
    with pytest.raises(lipscope.InputError, match="layers 9"):
        lipscope.measure(**asked, layers=[9], executor=here)
    with pytest.raises(TypeError, match="from files"):
        lipscope.measure(layer, np.ones((3, 12)), executor=here)
    with pytest.raises(TypeError, match="directions"):
        lipscope.measure(**asked, directions=True, executor=here)
    with pytest.raises(TypeError, match="no executor"):
        lipscope.measure(**asked, workers=2)
    assert here.tasks == []

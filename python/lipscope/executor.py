"""A measurement on the workers of somebody else's engine: any ``concurrent.futures.Executor``.

The questions of :func:`lipscope.measure` are cut into tasks. A task is a list of numbers: each worker reads weights and
text from the folder by itself, once, and keeps them for the tasks that follow. What comes back is records, which go into
the journal as they come. Which worker does what, and whether a task is tried again when its worker is lost, is decided by
the engine.
"""

from __future__ import annotations

import json
import os
import threading
import warnings
from collections import deque
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from pathlib import Path
from typing import Any

from lipscope import _core
from lipscope.errors import InputError, WorkLost
from lipscope.progress import Told

__all__ = ["answer", "measure_on"]

# Tasks a worker: many, so that workers end together and little is lost with one; few, where every task reads the model
# layer by layer.
_TASKS_A_WORKER = 16
_TASKS_A_WORKER_OF_A_LARGE_MODEL = 2
_WORKERS_OF_AN_ENGINE_THAT_DOES_NOT_SAY = 16
_NAMED_AT_MOST = 20

# ---- of a worker

_idle: dict[str, list[_core.MeasureWorker]] = {}
_idle_lock = threading.Lock()


def answer(options: dict[str, Any], questions: list[int], attempt: int = 0) -> list[str]:
    """What a worker does: the records of these questions, as lines of JSON.

    Weights and text are loaded once and kept until other options come. Threads of one process have each their own.
    ``attempt`` makes two tries of one task two tasks for engines that know tasks by their arguments.
    """
    del attempt
    name = json.dumps(options, sort_keys=True)
    with _idle_lock:
        for other in [key for key in _idle if key != name]:
            del _idle[other]
        mine = _idle.setdefault(name, [])
        worker = mine.pop() if mine else None
    if worker is None:
        worker = _core.MeasureWorker(options)
    try:
        return worker.answer(questions)
    finally:
        with _idle_lock:
            _idle.setdefault(name, []).append(worker)


# ---- of who collects


def _workers_of(executor: Executor) -> int:
    """How many workers the engine has, as far as it says."""
    for name in ("num_workers", "_max_workers"):
        count = getattr(executor, name, None)
        if isinstance(count, int) and count > 0:
            return count
    client = getattr(executor, "_client", None)  # of Dask
    if client is not None and hasattr(client, "nthreads"):
        return max(1, sum(int(threads) for threads in client.nthreads().values()))
    return _WORKERS_OF_AN_ENGINE_THAT_DOES_NOT_SAY


def _with_whole_paths(options: dict[str, Any]) -> dict[str, Any]:
    """Workers may have been started in other folders."""
    files = ("model", "weights", "text", "ids", "input", "embedded")
    return {k: os.path.abspath(v) if k in files and isinstance(v, str) else v for k, v in options.items()}


class _UnderWay:
    """Beside the journal, the questions that workers are at: an engine may take this process down with it."""

    def __init__(self, out: str, resume: bool) -> None:
        self._file = Path(out + ".under-way") if out else None
        self.left: list[int] = []
        if self._file and resume and self._file.exists():
            try:
                self.left = [int(n) for n in json.loads(self._file.read_text())["questions"]]
            except (ValueError, KeyError, TypeError) as wrong:
                raise InputError(f"{self._file}: is not what lipscope wrote there: {wrong}") from None

    def write(self, questions: Iterable[int]) -> None:
        if self._file:
            part = self._file.with_name(self._file.name + ".part")
            part.write_text(json.dumps({"questions": sorted(questions)}))
            part.replace(self._file)

    def close(self) -> None:
        if self._file:
            self._file.unlink(missing_ok=True)


def _named(collection: _core.Collection, questions: Iterable[int]) -> list[str]:
    return [collection.words(number) for number in sorted(questions)]


def _listed(names: list[str]) -> str:
    more = len(names) - _NAMED_AT_MOST
    return "\n  ".join([""] + names[:_NAMED_AT_MOST] + ([f"and {more} more"] if more > 0 else []))


def _is_lost(future: Future[list[str]]) -> bool:
    return future.cancelled() or future.exception() is not None


class _Run:
    """One measurement on one executor."""

    def __init__(
        self, executor: Executor, collection: _core.Collection, options: dict[str, Any], workers: int, told: Told | None
    ) -> None:
        self._executor, self._collection, self._options = executor, collection, options
        self._workers, self._told = workers, told
        self._waiting: dict[Future[list[str]], list[int]] = {}
        self._attempts = 0
        self._done = collection.total - len(collection.missing())

    def _submit(self, task: list[int]) -> None:
        self._attempts += 1
        self._waiting[self._executor.submit(answer, self._options, task, self._attempts)] = task

    def _take(self, task: list[int], future: Future[list[str]]) -> BaseException | None:
        """Takes the answers; or why there are none, where the engine itself goes on."""
        try:
            lines = future.result()
        except BrokenExecutor:
            raise
        except InputError:
            raise
        except (Exception, CancelledError) as lost:  # of the task, or the engine's word for a lost worker
            return lost
        self._collection.take(lines, "a worker")
        self._done += len(task)
        if self._told:
            self._told(self._done, self._collection.total, "questions", 0, 0)
        return None

    def all_at_once(self, tasks: Iterable[list[int]], under_way: _UnderWay) -> list[tuple[list[int], BaseException]]:
        """Twice as many tasks as workers at a time. Which were lost, and why."""
        queue, lost = deque(tasks), []
        while queue or self._waiting:
            while queue and len(self._waiting) < 2 * self._workers:
                self._submit(queue.popleft())
            under_way.write(number for task in self._waiting.values() for number in task)
            # not for ever: Ctrl-C must come through
            done, _ = wait(self._waiting, timeout=1.0, return_when=FIRST_COMPLETED)
            # answers first: what follows may end the run
            for future in sorted(done, key=_is_lost):
                task = self._waiting[future]
                why = self._take(task, future)
                del self._waiting[future]
                if why is not None:
                    lost.append((task, why))
        return lost

    def one_by_one(self, task: list[int], under_way: _UnderWay) -> dict[int, BaseException]:
        """A task that was lost, with nothing beside it: whole, then in halves, until those questions are left that
        cannot be answered."""
        self._submit(task)
        under_way.write(task)
        (future,) = self._waiting
        wait(self._waiting)
        why = self._take(task, future)
        del self._waiting[future]
        if why is None:
            return {}
        if len(task) == 1:
            return {task[0]: why}
        half = len(task) // 2
        return self.one_by_one(task[:half], under_way) | self.one_by_one(task[half:], under_way)

    def cancel(self) -> set[int]:
        """The questions that were under way."""
        questions = {number for task in self._waiting.values() for number in task}
        for future in self._waiting:
            future.cancel()
        return questions


def measure_on(
    executor: Executor, options: dict[str, Any], workers: int | None = None, told: Told | None = None
) -> dict[str, Any]:
    """Measures on the workers of the executor; what was found, as the core gives it."""
    out, resume = str(options.pop("out", "")), bool(options.pop("resume", False))
    options.setdefault("threads", 1)  # workers are what runs side by side
    collection = _core.Collection(options, out, resume)
    try:
        return _measure(executor, collection, options, workers or _workers_of(executor), _UnderWay(out, resume), told)
    finally:
        collection.close()  # whoever keeps the exception keeps no lock


def _measure(
    executor: Executor,
    collection: _core.Collection,
    options: dict[str, Any],
    workers: int,
    under_way: _UnderWay,
    told: Told | None,
) -> dict[str, Any]:
    run = _Run(executor, collection, _with_whole_paths(options), workers, told)
    missing = collection.missing()
    last = sorted(set(under_way.left) & set(missing))
    if last:
        warnings.warn(
            "the last run ended while workers were at these questions, which now come last:"
            + _listed(_named(collection, last)),
            RuntimeWarning,
            stacklevel=5,
        )
    first = sorted(set(missing) - set(last))
    each = _TASKS_A_WORKER if collection.keeps_layers else _TASKS_A_WORKER_OF_A_LARGE_MODEL
    failed: dict[int, BaseException] = {}
    try:
        for questions in (first, last):
            tasks = collection.parts(questions, workers * each) if questions else []
            for task, _ in run.all_at_once(tasks, under_way):
                failed |= run.one_by_one(task, under_way)
    except BrokenExecutor as broken:
        names = _named(collection, run.cancel())
        raise WorkLost(
            f"the executor lost a worker and does not go on ({type(broken).__name__}). What was answered is kept in"
            " the file out, if one was given, and the same call with resume=True goes on. Under way were:"
            + _listed(names),
            names,
        ) from broken
    except BaseException:
        run.cancel()
        raise
    found = collection.finish()
    under_way.close()
    if failed:
        names = [f"{collection.words(n)}: {type(e).__name__}: {e}" for n, e in sorted(failed.items())]
        raise WorkLost(
            f"{len(failed)} of {collection.total} questions could not be answered, each tried alone (the others are answered):"
            + _listed(names),
            names,
        )
    return found

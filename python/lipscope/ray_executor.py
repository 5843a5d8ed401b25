"""Ray as an executor: ``lipscope.measure(..., executor=RayExecutor())``."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import ray

__all__ = ["RayExecutor"]


class RayExecutor(Executor):
    """Every call is a task of Ray, with one core unless ``options`` (of ``ray.remote``) say otherwise. Ray tries a task
    again, ``max_retries`` times, if its worker dies. ``ray.init`` is called before, by who knows the cluster."""

    def __init__(self, **options: Any) -> None:
        self._options = {"num_cpus": 1, "max_retries": 3, **options}
        cores = ray.cluster_resources().get("CPU", 1)
        self.num_workers = max(1, int(cores / max(self._options["num_cpus"], 1)))
        self._under_way: set[Any] = set()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        task = ray.remote(**self._options)(fn).remote(*args, **kwargs)
        future: Future[Any] = task.future()
        self._under_way.add(task)
        future.add_done_callback(lambda _: self._under_way.discard(task))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        tasks = list(self._under_way)
        if cancel_futures:
            for task in tasks:
                ray.cancel(task)
        elif wait and tasks:
            ray.wait(tasks, num_returns=len(tasks))

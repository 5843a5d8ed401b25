"""One measurement on the engine that you have. The file is the same on all of them.

  python measure_on.py pool MODEL_DIR my.txt audit.jsonl --workers 2
  python measure_on.py dask MODEL_DIR my.txt audit.jsonl --workers 2
  python measure_on.py dask MODEL_DIR my.txt audit.jsonl --scheduler tcp://10.0.0.1:8786
  python measure_on.py ray  MODEL_DIR my.txt audit.jsonl --workers 2
  python measure_on.py ray  MODEL_DIR my.txt audit.jsonl --scheduler auto
  mpirun -n 4 python -m mpi4py.futures measure_on.py mpi MODEL_DIR my.txt audit.jsonl

The folder of the model and the text are read by every worker: they lie where all hosts see them, under one path. The
same command goes on after an interruption.
"""

from __future__ import annotations

import argparse
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager

import lipscope


@contextmanager
def pool(workers: int, scheduler: str | None) -> Iterator[Executor]:
    # fresh processes: a forked one has the locks of its parent, but not its threads
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as executor:
        yield executor


@contextmanager
def dask(workers: int, scheduler: str | None) -> Iterator[Executor]:
    from dask.distributed import Client, LocalCluster

    if scheduler:
        with Client(scheduler) as client:
            yield client.get_executor()
        return
    # one thread a process: lipscope has threads of its own
    with LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            yield client.get_executor()


@contextmanager
def ray(workers: int, scheduler: str | None) -> Iterator[Executor]:
    import ray as engine
    from lipscope.ray_executor import RayExecutor

    if scheduler:
        engine.init(address=scheduler)
    else:
        engine.init(num_cpus=workers, include_dashboard=False)
    try:
        yield RayExecutor()
    finally:
        engine.shutdown()


@contextmanager
def mpi(workers: int, scheduler: str | None) -> Iterator[Executor]:
    from mpi4py.futures import MPIPoolExecutor

    with MPIPoolExecutor() as executor:
        yield executor


ENGINES = {"pool": pool, "dask": dask, "ray": ray, "mpi": mpi}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("model", metavar="MODEL_DIR")
    parser.add_argument("text", metavar="TEXT")
    parser.add_argument("out", metavar="OUT.jsonl")
    parser.add_argument("--lengths", default="8,32,128", help="of the windows (8,32,128)")
    parser.add_argument("--samples", type=int, default=10, help="windows of each length (10)")
    parser.add_argument("--heads", default="all", help="all together, or each (all)")
    parser.add_argument("--workers", type=int, default=2, help="of an engine that is started here (2)")
    parser.add_argument("--scheduler", help="address of an engine that runs already")
    asked = parser.parse_args()
    with ENGINES[asked.engine](asked.workers, asked.scheduler) as executor:
        found = lipscope.measure(
            asked.model,
            text=asked.text,
            lengths=asked.lengths,
            samples=asked.samples,
            heads=asked.heads,
            out=asked.out,
            resume=True,
            executor=executor,
        )
    print(found)


if __name__ == "__main__":
    main()

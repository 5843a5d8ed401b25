"""What an executor with two workers costs, beside one process with --threads 2, in turns.

  PYTHONPATH=build/release/python build/python-env/bin/python bench/executor_overhead.py \\
      build/release/lipscope MODEL_DIR TEXT --samples 2000 --turns 3

Each turn measures the same windows once by the program with --threads 2 and once by lipscope.measure on a process pool of
two, start and end of all processes included, and compares the two files. Clock and CPU time are printed for each, and
at the end the ratio of the medians. The clock counts on a quiet machine alone; CPU time says what was worked.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[1] / "examples" / "cluster" / "measure_on.py"


def timed(words: list[object]) -> tuple[float, float]:
    """Seconds by the clock, and of CPU, of a command and of all that it starts."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run([str(w) for w in words], check=True, stdout=subprocess.DEVNULL)
    after, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - start
    return clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def numbers(path: Path) -> list[tuple[object, ...]]:
    records = map(json.loads, path.read_text().splitlines())
    return [tuple(r.get(f) for f in ("command", "layer", "head", "n", "sample", "lower", "upper")) for r in records]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("model", metavar="MODEL_DIR")
    parser.add_argument("text", metavar="TEXT")
    parser.add_argument("--lengths", default="32")
    parser.add_argument("--samples", default="2000")
    parser.add_argument("--turns", type=int, default=3)
    asked = parser.parse_args()
    windows = ["--lengths", asked.lengths, "--samples", asked.samples]
    clocks: dict[str, list[float]] = {"threads": [], "executor": []}
    cpus: dict[str, list[float]] = {"threads": [], "executor": []}
    for turn in range(asked.turns):
        with tempfile.TemporaryDirectory() as folder:
            files = {name: Path(folder) / f"{name}.jsonl" for name in clocks}
            commands = {
                "threads": [asked.program, "measure", asked.model, "--text", asked.text, *windows, "--threads", 2,
                            "--quiet", "--out", files["threads"]],
                "executor": [sys.executable, SCRIPT, "pool", asked.model, asked.text, files["executor"], *windows,
                             "--workers", 2],
            }  # fmt: skip
            for name in sorted(commands, reverse=turn % 2 == 0):
                clock, cpu = timed(commands[name])
                clocks[name].append(clock)
                cpus[name].append(cpu)
                load = os.getloadavg()[0]
                print(f"turn {turn + 1}, {name}: {clock:.1f} s, {cpu:.1f} s of CPU (load {load:.1f})", flush=True)
            if numbers(files["threads"]) != numbers(files["executor"]):
                sys.exit("the two files differ")
    for what, of in (("clock", clocks), ("CPU", cpus)):
        ratio = statistics.median(of["executor"]) / statistics.median(of["threads"])
        print(f"{what}: executor / threads = {ratio:.3f}")


if __name__ == "__main__":
    main()

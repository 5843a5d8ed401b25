#!/usr/bin/env python3
"""All that docs/benchmarks.md states, one after another on this machine.

    peers-venv/bin/python bench/peers/sitting.py --models models --text models/moby-dick/moby-dick.txt --out sitting

Every program runs alone. What one prints is kept in a file of its own in --out, so that a sitting that was interrupted
goes on with the next program; --only takes those whose names have a word in them. At the end come the times and the
ratios. Leave no other load on the machine: half an hour on two cores.

--models is a folder with minilm and bert-base-uncased (tools/get-model), --build that of `make bench`, and the package
lipscope is in --build as well (`make release`).
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

PEERS = Path(__file__).resolve().parent


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models", required=True, type=Path, metavar="FOLDER")
    p.add_argument("--text", required=True, metavar="FILE")
    p.add_argument("--out", required=True, type=Path, metavar="FOLDER")
    p.add_argument("--build", default="build/release", type=Path, metavar="FOLDER")
    p.add_argument("--only", metavar="WORD")
    return p.parse_args()


def steps(o):
    """Names and commands, in the order in which they run."""
    program = str(o.build / "lipscope")
    peer = lambda name, *more: [sys.executable, str(PEERS / (name + ".py")), *map(str, more)]
    bench = lambda name, *more: [str(o.build / "bench" / (name + "_bench")), *more]
    found = []

    def protocol(model, ours, theirs):
        """lipscope before and after each peer, with and without what it says from above."""
        folder = o.models / model
        measure = [program, "measure", str(folder), "--text", o.text, *ours, "--quiet", "--json"]
        kinds = {"lower alone": ["--certificate", "none", "--enclose", "none"], "and upper (whp)": ["--certificate", "none"],
                 "and upper": []}
        def turn(when):
            for kind, more in kinds.items():
                found.append((f"{model}, lipscope, {kind}, {when}", [*measure, *more]))
        turn("before")
        for rule, more in theirs.items():
            found.append((f"{model}, torch, {rule}", peer("protocol_peer", folder, "--text", o.text, *more)))
            turn(f"after {rule}")

    protocol("minilm", ["--lengths", "2:100:8"], {"residual 1e-5": ["--lengths", "2:100:8"]})
    lengths = ["--lengths", "18,50,98", "--samples", "2"]
    told = ["--told", str(o.out / "bert-base-uncased, lipscope, lower alone, before.txt")]
    protocol("bert-base-uncased", lengths,
             {"residual 1e-5": [*lengths, "--most", "3000"], "told to 1e-6": [*lengths, *told, "--most", "2000"],
              "told to 1e-4": [*lengths, *told, "--accuracy", "1e-4"]})
    for when in ("before", "after"):
        found.append((f"one layer, lipscope, {when}", bench("measure")))
        if when == "before":
            for name in ("torch", "jax"):
                for n in (512, 1024):
                    found.append((f"one layer, {name}, n = {n}", peer(name + "_peer", "--n", n, "--measure")))
                found.append((f"one layer, {name}, ten of n = 32", peer(name + "_peer", "--n", 32, "--sweep", 10)))
    found.append(("products of a layer", bench("jacobian")))
    found.append(("panels", bench("panels")))
    for seed in range(3):
        found.append((f"local_constant, seed {seed}", peer("local_constant", "--n", 512, "--measure", "--seed", seed)))
    found.append(("measure in Python", peer("measure_in_python", "--program", program, "--threads", 1, "--repeat", 5)))
    for threads in (2, 1):
        found.append((f"training, threads {threads}", peer("train_peer", "turns", *bench("train"), threads, 3)))
    return found


def run(name, command, folder, build):
    """Seconds of the clock, or of an earlier run."""
    kept, note = folder / (name + ".txt"), folder / (name + ".seconds")
    if note.exists():
        return float(note.read_text())
    print(name, end=" ", flush=True)
    environment = {**os.environ, "PYTHONPATH": str((build / "python").resolve())}
    begin = time.perf_counter()
    with open(kept, "wb") as out:
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, env=environment)
    seconds = time.perf_counter() - begin
    if done.returncode:
        print(f"ended with exit code {done.returncode}: {done.stderr.decode(errors='replace')[-400:]}", flush=True)
        return None
    print(f"{seconds:.1f} s", flush=True)
    note.write_text(f"{seconds}\n")
    return seconds


def ratios(seconds, folder):
    """Of every peer of a protocol to the runs of lipscope around it."""
    print("\n| model | torch, rule | torch, s | lipscope: | s | ratio |\n|---|---|---|---|---|---|")
    for name in seconds:
        model, who, *rest = name.split(", ")
        if who != "torch" or not (folder / f"{name}.txt").exists() or model == "one layer":
            continue
        theirs = json.loads((folder / f"{name}.txt").read_text().splitlines()[-1])["seconds"]
        by_kind = {}
        for other, took in seconds.items():
            if other.startswith(f"{model}, lipscope, ") and took:
                by_kind.setdefault(other.split(", ")[2], []).append(took)
        for kind, took in by_kind.items():
            print(f"| {model} | {rest[0]} | {theirs:.1f} | {kind} | {min(took):.2f} to {max(took):.2f} "
                  f"| {theirs / max(took):.1f} to {theirs / min(took):.1f} |")


def main():
    o = parse()
    o.out.mkdir(parents=True, exist_ok=True)
    seconds = {}
    for name, command in steps(o):
        if not o.only or o.only in name:
            seconds[name] = run(name, command, o.out, o.build)
    ratios(seconds, o.out)
    return 0 if all(seconds.values()) else 1


if __name__ == "__main__":
    sys.exit(main())

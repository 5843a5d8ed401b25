#!/usr/bin/env python3
"""lipscope.measure in Python beside the program of the same build.

Both measure the same numbers with the same options and must find the same bits. They take turns, so that a load on the
machine meets both; timed are the call in Python and the whole run of the program. On a machine with a heavy load, seconds
of the clock say little; with --threads 1 those of the CPU still do. An attention layer is measured from
arrays and from a file, or, with a folder of Hugging Face and a text, a model from that folder by both.

    python3 bench/peers/measure_in_python.py --program build/release/lipscope
    python3 bench/peers/measure_in_python.py --program build/release/lipscope --model MODEL_DIR --text TEXT

needs lipscope's Python package, installed or by PYTHONPATH=build/release/python.
"""

import argparse
import json
import resource
import statistics
import struct
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

import lipscope


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--program", required=True)
    p.add_argument("--model", metavar="MODEL_DIR")
    p.add_argument("--text")
    p.add_argument("--n", type=int, default=512)
    p.add_argument("--enclose", type=float, default=1.05)
    p.add_argument("--threads", type=int, default=0)
    p.add_argument("--repeat", type=int, default=7)
    options = p.parse_args()
    if options.model:
        in_python, by_program = of_folder(options)
        compare(in_python, by_program, options)
        return
    with tempfile.TemporaryDirectory() as folder:
        in_python, by_program = of_layer(options, Path(folder, "layer.safetensors"))
        compare(in_python, by_program, options)


def of_folder(options):
    """All layers and heads over a text."""
    arguments = [options.model, "--text", options.text, "--lengths", "32,128", "--samples", "2", "--heads", "each", "--threads", options.threads]
    given = {"text": options.text, "lengths": [32, 128], "samples": 2, "heads": "each", "threads": options.threads}
    return lambda: lipscope.measure(options.model, **given), arguments


def of_layer(options, file):
    """One layer of GPT-2's size, from arrays and from a file."""
    rng = np.random.default_rng(0)
    weights = {name: rng.normal(0, 0.02, (768, 768)).astype(np.float32) for name in "qkvo"}
    x = rng.standard_normal((options.n, 768), np.float32)
    write(file, {**weights, "x": x})
    layer = lipscope.Attention(**weights, heads=12)
    arguments = ["--weights", file, "--num-heads", "12", "--enclose", options.enclose, "--threads", options.threads]
    return lambda: lipscope.measure(layer, x, enclose=options.enclose, threads=options.threads), arguments


def write(file, tensors):
    header, end = {}, 0
    for name, array in tensors.items():
        begin, end = end, end + array.nbytes
        header[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(a.tobytes() for a in tensors.values()))


def cpu_of_programs():
    """Seconds of the CPU that all programs took that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def compare(in_python, arguments, options):
    command = [options.program, "measure", *map(str, arguments), "--json", "--quiet"]
    seconds, of_cpu = {"python": [], "program": []}, {"python": [], "program": []}
    for turn in range(options.repeat + 1):  # one more first, to warm up
        begin, own, before = time.perf_counter(), time.process_time(), cpu_of_programs()
        found = in_python()
        middle, own_end = time.perf_counter(), time.process_time()
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        end = time.perf_counter()
        if turn:
            seconds["python"].append(middle - begin)
            seconds["program"].append(end - middle)
            of_cpu["python"].append(own_end - own)
            of_cpu["program"].append(cpu_of_programs() - before)
    records = [found] if isinstance(found, lipscope.Record) else found
    theirs = [json.loads(line) for line in lines.splitlines()]
    theirs = [r["lower"] for r in theirs if r["command"] == "measure"]
    if [r.lower for r in records] != theirs:
        raise SystemExit("Python and the program found different numbers")
    ratios, cpu_ratios = ([a / b for a, b in zip(*of.values())] for of in (seconds, of_cpu))
    print(json.dumps({
        "measurements": len(theirs),
        "python_seconds": statistics.median(seconds["python"]),
        "program_seconds": statistics.median(seconds["program"]),
        "ratio": statistics.median(ratios),
        "least": min(ratios),
        "most": max(ratios),
        "python_cpu_seconds": statistics.median(of_cpu["python"]),
        "program_cpu_seconds": statistics.median(of_cpu["program"]),
        "ratio_of_cpu": statistics.median(cpu_ratios),
    }))  # fmt: skip


if __name__ == "__main__":
    main()

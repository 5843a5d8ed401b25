#!/usr/bin/env python3
"""lipscope.torch.local_constant beside power iteration, both on PyTorch's own products.

One attention layer, one input, the same function of torch. Power iteration is that of torch_peer.py.
Two comparisons are made:

  residual   nobody knows the answer: both go on until |J'J v - s v|/s is at most 1e-4;
  told       power iteration is told the answer and stops at the first value within 1e-4 of it, which
             no user can do. local_constant is told nothing; it ends by a residual of 5e-3, and its
             value must then be within 1e-4 as well.

Timed are whole measurements: for local_constant also the check that the function is deterministic, and
the evidence in f64. The two take turns, so that a load on the machine meets both. On a machine with a
heavy load, seconds of the clock say little; with --threads 1 those of the CPU still do.

    peers-venv/bin/python bench/peers/local_constant.py --n 512 --measure

needs lipscope's Python package, installed or by PYTHONPATH=build/release/python.
"""

import json
import statistics
import time

import common

common.use_fast_allocator()

import torch  # noqa: E402
from torch_peer import TorchPeer  # noqa: E402

import lipscope.torch  # noqa: E402

# The error of the value is of the order of the residual's square. Chosen by trying: at seeds 0, 1 and 2
# the error was then 1.4e-5 to 4.1e-5; at 7e-3 it came to 8.9e-5, too near to 1e-4.
TOLD = 5e-3
RESIDUAL = 1e-4


def main():
    options = common.parse("torch")
    torch.set_num_threads(options.threads)
    layer, sequences = common.load(options)
    x = sequences[0]
    start = common.start_vector(x.shape, options.seed)
    peer = TorchPeer(layer)
    peer.linearize(x)
    reference = common.lanczos_norm(peer.product, start)

    def ours(tolerance):
        found = lipscope.torch.local_constant(
            peer.attention, torch.from_numpy(x), tolerance=tolerance, seed=options.seed
        )
        return found.lower, found.steps

    def told():
        peer.linearize(x)
        return peer.power_iteration(start, reference, 1e-4)

    def settled():
        peer.linearize(x)
        return peer.settle(start, RESIDUAL)

    compare("residual", settled, lambda: ours(RESIDUAL), options, reference, len(x))
    compare("told", told, lambda: ours(TOLD), options, reference, len(x))


def compare(what, power, ours, options, reference, n):
    """Both in turn; what each found, and how many times as long power iteration took."""
    seconds = {"power iteration": [], "local_constant": []}
    of_cpu = {"power iteration": [], "local_constant": []}
    results = {}
    for turn in range(options.repeat + 1):  # one more first, to warm up
        for name, run in (("power iteration", power), ("local_constant", ours)):
            begin, cpu = time.perf_counter(), time.process_time()
            results[name] = run()
            if turn:
                seconds[name].append(time.perf_counter() - begin)
                of_cpu[name].append(time.process_time() - cpu)
    ratios, cpu_ratios = ([a / b for a, b in zip(*of.values())] for of in (seconds, of_cpu))
    for name, (value, steps) in results.items():
        error = abs(value - reference) / reference
        if error > 1e-4:
            raise SystemExit(f"{name}: {value} is {error:.2g} from the reference {reference}")
        print(json.dumps({"comparison": what, "what": name, "n": n, "mask": options.mask, "threads": options.threads,
                          "seconds": statistics.median(seconds[name]),
                          "cpu_seconds": statistics.median(of_cpu[name]), "steps": steps, "value": value,
                          "relative_error": error}), flush=True)
    print(json.dumps({"comparison": what, "what": "ratio", "median": statistics.median(ratios), "least": min(ratios),
                      "median_of_cpu": statistics.median(cpu_ratios)}), flush=True)


if __name__ == "__main__":
    main()

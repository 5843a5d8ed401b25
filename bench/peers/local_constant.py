#!/usr/bin/env python3
"""lipscope.torch.local_constant beside power iteration, both on PyTorch's own products.

One attention layer, one input, the same function of torch. Power iteration is that of torch_peer.py.
Two comparisons are made:

  residual   nobody knows the answer: both go on until |J'J v - s v|/s is at most 1e-4;
  told       power iteration is told the answer and stops at the first value within 1e-4 of it, which
             no user can do. local_constant is told nothing; it ends by a residual of 4e-3, and its
             value must then be within 1e-4 as well.

How long either takes depends on its random start: of power iteration, one start may take
more than twice as many steps as another. So both begin every turn at another start, --repeat turns
in all, and what counts is the ratio of their total times; the least and the largest of one turn are
printed too.

Timed are whole measurements: for local_constant also the check that the function is deterministic, and
the evidence in f64. The two take turns, so that a load on the machine meets both. On a machine with a
heavy load, seconds of the clock say little; with --threads 1 those of the CPU still do.

    for seed in 0 1 2; do
      peers-venv/bin/python bench/peers/local_constant.py --n 512 --measure --seed $seed
    done

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

# The error of the value is of the order of the residual's square.
TOLD = 4e-3
RESIDUAL = 1e-4


def main():
    options = common.parse("torch")
    torch.set_num_threads(options.threads)
    layer, sequences = common.load(options)
    x = sequences[0]
    peer = TorchPeer(layer)
    peer.linearize(x)
    reference = common.lanczos_norm(peer.product, common.start_vector(x.shape, options.seed))

    def ours(tolerance):
        def run(seed):
            found = lipscope.torch.local_constant(
                peer.attention, torch.from_numpy(x), tolerance=tolerance, seed=seed
            )
            return found.lower, found.steps

        return run

    def told(seed):
        peer.linearize(x)
        return peer.power_iteration(common.start_vector(x.shape, seed), reference, 1e-4)

    def settled(seed):
        peer.linearize(x)
        return peer.settle(common.start_vector(x.shape, seed), RESIDUAL)

    compare("residual", settled, ours(RESIDUAL), options, reference, len(x))
    compare("told", told, ours(TOLD), options, reference, len(x))


def compare(what, power, ours, options, reference, n):
    """Both in turn, each turn from another start; what each took, and how many times as long power iteration took."""
    runs = {"power iteration": power, "local_constant": ours}
    seconds, of_cpu, steps, errors = ({name: [] for name in runs} for _ in range(4))
    for run in runs.values():  # to warm up
        run(options.seed)
    for turn in range(options.repeat):
        for name, run in runs.items():
            begin, cpu = time.perf_counter(), time.process_time()
            value, taken = run(1000 * options.seed + turn)
            seconds[name].append(time.perf_counter() - begin)
            of_cpu[name].append(time.process_time() - cpu)
            steps[name].append(taken)
            errors[name].append(abs(value - reference) / reference)
            if errors[name][-1] > 1e-4:
                raise SystemExit(f"{name}: {value} is {errors[name][-1]:.2g} from the reference {reference}")
    about = {"comparison": what, "seed": options.seed}
    for name in runs:
        print(json.dumps({**about, "what": name, "n": n, "mask": options.mask, "threads": options.threads,
                          "seconds": statistics.mean(seconds[name]), "cpu_seconds": statistics.mean(of_cpu[name]),
                          "steps": steps[name], "largest_relative_error": max(errors[name])}), flush=True)
    single = [a / b for a, b in zip(*seconds.values())]
    of_totals, of_cpu_totals = (sum(t["power iteration"]) / sum(t["local_constant"]) for t in (seconds, of_cpu))
    print(json.dumps({**about, "what": "ratio", "of_totals": of_totals, "least": min(single), "largest": max(single),
                      "of_totals_of_cpu": of_cpu_totals}), flush=True)


if __name__ == "__main__":
    main()

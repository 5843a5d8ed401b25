"""What the peers share: command line, layer, reference value, timing, JSON lines.

A peer is a class made from a Layer. `peer.linearize(x)` does the work that depends
on x only; `peer.product(v)` is then one v -> J'J v; `peer.power_iteration(...)`
is the measurement. Everything here is numpy and is outside the timed regions.
"""

import argparse
import json
import math
import os
import statistics
import sys
import time
from dataclasses import dataclass

import numpy as np


@dataclass
class Layer:
    """One attention layer without its input: wq, wk, wv [d, Hk], wo [Hk, d]."""

    wq: np.ndarray
    wk: np.ndarray
    wv: np.ndarray
    wo: np.ndarray
    bq: np.ndarray  # [Hk]; the biases of k, v and o do not change the Jacobian
    heads: int
    causal: bool

    def wqkv(self):
        """Query, key and value maps side by side [d, 3Hk], the 1/sqrt(k) in the query's."""
        root = math.sqrt(self.wq.shape[1] // self.heads)
        return np.concatenate([self.wq / root, self.wk, self.wv], 1).astype(np.float32)

    def bqkv(self):
        root = math.sqrt(self.wq.shape[1] // self.heads)
        zero = np.zeros_like(self.bq)
        return np.concatenate([self.bq / root, zero, zero]).astype(np.float32)

    def flops(self, n):
        """Of one J'J product, by the count lipscope uses (k = d/H)."""
        d = self.wq.shape[0]
        return 16 * n * d * d + (8 if self.causal else 16) * n * n * d


def use_fast_allocator():
    """Start this program again with a malloc that keeps large blocks.

    By default glibc returns every [H, n, n] temporary to the system, and faulting its
    pages in again costs more than the arithmetic on it. Must run before heavy imports.
    """
    if "MALLOC_MMAP_MAX_" not in os.environ:
        os.environ.update(MALLOC_MMAP_MAX_="0", MALLOC_TRIM_THRESHOLD_=str(1 << 34))
        os.execv(sys.executable, [sys.executable, *sys.argv])


def parse(peer):
    p = argparse.ArgumentParser(
        description=f"Measure the spectral norm of the Jacobian of self-attention with {peer}: "
        "power iteration on J'J, f32. Prints one JSON line for each thing timed.",
        epilog=f"Example, on the numbers lipscope reads too: first `{peer}_peer.py --n 512 --save "
        f"layer.safetensors`, then `{peer}_peer.py --weights layer.safetensors --product --measure` "
        "and `lipscope measure --weights layer.safetensors --num-heads 12`.")
    what = p.add_argument_group("what to time (any of them together)")
    what.add_argument("--product", action="store_true", help="one J'J product: the median of several")
    what.add_argument("--measure", action="store_true",
                      help="linearise at x and iterate until the value is within 1e-4 of the reference")
    what.add_argument("--sweep", type=int, metavar="B", default=0,
                      help="B measurements, one after another, of B sequences of n tokens each")
    what.add_argument("--selftest", action="store_true",
                      help="compare with the SVD of the dense Jacobian of small layers, and stop")
    on = p.add_argument_group("on which layer and input")
    on.add_argument("--n", type=int, metavar="N",
                    help="tokens in a sequence (128; with --weights, the rows of x over B)")
    on.add_argument("--mask", choices=["none", "causal"], default="none")
    on.add_argument("--num-heads", type=int, default=12, metavar="H")
    on.add_argument("--weights", metavar="FILE.safetensors",
                    help="tensors q, k, v, o [in, out], x [n, d], optional q_bias; without it a random "
                    "layer of width 768, weights normal 0.02, tokens standard normal")
    on.add_argument("--input", metavar="X.npy", help="the tokens [n, d] in place of the file's x")
    on.add_argument("--save", metavar="FILE.safetensors", help="write the layer and x, for lipscope to read")
    on.add_argument("--seed", type=int, default=0, help="of the random layer, tokens and start (0)")
    how = p.add_argument_group("how")
    how.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    how.add_argument("--repeat", type=int, default=5, help="timed runs of which the median is printed (5)")
    how.add_argument("--reference", type=float, nargs="+", metavar="VALUE",
                     help="the value to reach, one for each sequence; without it a long Lanczos run, "
                     "untimed, finds it")
    options = p.parse_args()
    if not (options.product or options.measure or options.sweep or options.selftest or options.save):
        p.error("nothing to do: give --product, --measure, --sweep B, --selftest or --save FILE")
    return options


def load(options):
    """The layer and the sequences [B, n, d] asked for."""
    rng = np.random.default_rng(options.seed)
    count = max(options.sweep, 1)
    if options.weights:
        from safetensors.numpy import load_file
        t = {name: np.asarray(a, np.float32) for name, a in load_file(options.weights).items()}
    else:
        t = {name: rng.normal(0, 0.02, (768, 768)).astype(np.float32) for name in "qkvo"}
        t["x"] = rng.standard_normal((count * (options.n or 128), 768), np.float32)
    x = np.load(options.input).astype(np.float32) if options.input else t["x"]
    n = options.n or len(x) // count
    if n < 1 or len(x) < count * n:
        sys.exit(f"{count} sequences of {n} tokens asked for, x has {len(x)} rows")
    if t["q"].shape[1] % options.num_heads:
        sys.exit(f"q has {t['q'].shape[1]} columns, not a multiple of {options.num_heads} heads")
    if options.save:
        from safetensors.numpy import save_file
        save_file({name: np.ascontiguousarray(a) for name, a in {**t, "x": x}.items()}, options.save)
    bq = t.get("q_bias", np.zeros(t["q"].shape[1], np.float32))
    layer = Layer(t["q"], t["k"], t["v"], t["o"], bq, options.num_heads, options.mask == "causal")
    return layer, x[: count * n].reshape(count, n, -1)


def start_vector(shape, seed):
    v = np.random.default_rng([seed, 1]).standard_normal(shape, np.float32)
    return v / np.linalg.norm(v)


def lanczos_norm(product, v, steps=200, tolerance=1e-6):
    """sqrt of the largest Ritz value of J'J: Lanczos with full reorthogonalisation."""
    basis = np.empty((min(steps, v.size), v.size))
    t = np.zeros((len(basis), len(basis)))
    basis[0] = v.ravel() / np.linalg.norm(v)
    for m in range(len(basis)):
        w = product(basis[m].reshape(v.shape).astype(np.float32)).ravel().astype(np.float64)
        t[m, m] = basis[m] @ w
        for _ in range(2):
            w -= (basis[: m + 1] @ w) @ basis[: m + 1]
        beta = np.linalg.norm(w)
        values, vectors = np.linalg.eigh(t[: m + 1, : m + 1])
        # the residual of the top Ritz pair bounds the error of its value by its square over the gap
        if beta * abs(vectors[-1, -1]) <= tolerance * values[-1] or m + 1 == len(basis):
            return math.sqrt(values[-1])
        t[m, m + 1] = t[m + 1, m] = beta
        basis[m + 1] = w / beta


def run(options, make_peer, name, version):
    """Times what was asked for and prints it."""
    layer, sequences = load(options)
    n = sequences.shape[1]
    start = start_vector(sequences[0].shape, options.seed)
    peer = make_peer(layer)

    def emit(what, seconds, products, iterations, value):
        print(json.dumps({"peer": name, "version": version, "threads": options.threads, "what": what,
                          "n": n, "mask": options.mask, "seconds": seconds, "iterations": iterations,
                          "value": value, "gflops": layer.flops(n) * products / seconds / 1e9}), flush=True)

    def measure(x, reference):
        peer.linearize(x)
        return peer.power_iteration(start, reference, 1e-4)

    def timed(action):
        """Median seconds of the runs, and the last result; one run more first, to warm up."""
        action()
        seconds = []
        for _ in range(options.repeat):
            begin = time.perf_counter()
            result = action()
            seconds.append(time.perf_counter() - begin)
        return statistics.median(seconds), result

    if options.product:
        peer.linearize(sequences[0])
        seconds, w = timed(peer.timed_product(start))
        emit("product", seconds, 1, options.repeat, float(np.linalg.norm(w)) ** 0.5)

    if options.measure or options.sweep:
        references = options.reference or []
        for x in sequences[len(references):]:
            peer.linearize(x)
            references.append(lanczos_norm(peer.product, start))

    if options.measure:
        seconds, (value, steps) = timed(lambda: measure(sequences[0], references[0]))
        emit("measure", seconds, steps, steps, value)
    if options.sweep:
        seconds, results = timed(lambda: [measure(x, r) for x, r in zip(sequences, references)])
        steps = sum(s for _, s in results)
        emit(f"sweep {options.sweep}", seconds, steps, steps, [v for v, _ in results])

#!/usr/bin/env python3
"""The step time of lipscope.torch.L2SelfAttention beside that of torch.nn.MultiheadAttention.

One step is the forward pass in training mode and the backward pass to the input and to all weights, in f32. Neither
uses a fused kernel: torch's scaled_dot_product_attention is held to its plain form ("math") for both. The two take
turns, so that a load on the machine meets both; what is printed is the median over the turns, and the ratio of the
medians, by the clock and by the time that the processor worked for them (on a machine that is busy, look at the latter,
with one thread).

    peers-venv/bin/python bench/peers/l2_attention.py

needs lipscope's Python package, installed or by PYTHONPATH=build/release/python. Where torch has no
scaled_dot_product_attention (1.13), both are plain anyway.
"""

import argparse
import contextlib
import json
import statistics
import time

import common

common.use_fast_allocator()

import torch  # noqa: E402

import lipscope.torch  # noqa: E402

# batch, tokens, width, heads
SIZES = [(32, 64, 64, 4), (16, 128, 256, 8), (4, 512, 256, 8), (2, 512, 768, 12), (1, 1024, 768, 12)]


def plain():
    """Inside, no fused kernel is used."""
    if not hasattr(torch.nn, "attention"):
        return contextlib.nullcontext()
    return torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)


def seconds(module, x, mask):
    begin, worked = time.perf_counter(), time.process_time()
    y = module(x, x, x, attn_mask=mask, need_weights=False)[0]
    y.backward(x)
    taken = time.perf_counter() - begin, time.process_time() - worked
    module.zero_grad(set_to_none=True)
    x.grad = None
    return taken


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--turns", type=int, default=15)
    p.add_argument("--threads", type=int, default=torch.get_num_threads())
    p.add_argument("--mask", choices=["none", "causal"], default="none")
    options = p.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    for batch, n, width, heads in SIZES:
        x = torch.randn(batch, n, width, requires_grad=True)
        mask = torch.ones(n, n, dtype=torch.bool).triu(1) if options.mask == "causal" else None
        modules = {
            "MultiheadAttention": torch.nn.MultiheadAttention(width, heads, batch_first=True),
            "L2SelfAttention": lipscope.torch.L2SelfAttention(width, heads, bias=True),
        }
        times = {name: [] for name in modules}
        with plain():
            for turn in range(options.turns + 2):
                for name, module in modules.items():
                    taken = seconds(module, x, mask)
                    if turn >= 2:  # the first ones fill caches
                        times[name].append(taken)
        found = dict(batch=batch, n=n, width=width, heads=heads, mask=options.mask, threads=options.threads)
        for i, what in enumerate(("ms", "processor ms")):
            medians = {name: statistics.median(t[i] for t in taken) for name, taken in times.items()}
            found |= {f"{name} {what}": round(1e3 * m, 3) for name, m in medians.items()}
            found[f"ratio of {what}"] = round(medians["L2SelfAttention"] / medians["MultiheadAttention"], 3)
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Ten steps of Muon in f64 with numpy, written from the formulas alone.

    muon_peer.py golden    prints tests/train/golden/muon.json, which
                           tests/train/muon_test.cpp compares with
    muon_peer.py check     the same steps by torch.optim.Muon (PyTorch 2.9 or
                           later): it works in bf16, so weights agree to about
                           one part in a hundred of the way they went

Weights and gradients are sines, so that both programs can make them; of squares,
as those of a line would be matrices of rank two. A matrix
[in x out] multiplies tokens from the right; PyTorch's is its transpose.
"""

import json
import sys

import numpy as np

STEPS = 10
RATE, MOMENTUM, DECAY = 0.02, 0.95, 0.1
A, B, C = 3.4445, -4.7750, 2.0315
# rows, columns, blocks side by side
SHAPES = [(6, 10, 1), (10, 6, 1), (5, 12, 2), (8, 6, 2)]
CASES = [
    {"nesterov": True, "scale": "one", "decay": 0.0},
    {"nesterov": False, "scale": "shape", "decay": DECAY},
]


def sines(shape, number, phase):
    j = np.arange(shape[0] * shape[1], dtype=np.float64) + 1
    return np.sin(0.37 * j * j + 78.233 * (number + 1) + phase * j).reshape(shape)


def weights(number):
    return 0.4 * sines(SHAPES[number][:2], number, 0.0)


def gradient(number, step):
    return 0.1 * sines(SHAPES[number][:2], number, 1.7 * step)


def newton_schulz(d):
    """Singular values by the polynomial, not by products: another way to the same. Of zeros no step."""
    if not d.any():
        return d
    u, s, vt = np.linalg.svd(d / np.sqrt((d * d).sum()), full_matrices=False)
    for _ in range(5):
        s = A * s + B * s**3 + C * s**5
    return (u * s) @ vt


def run(number, case):
    rows, cols, blocks = SHAPES[number]
    w, m = weights(number), np.zeros((rows, cols))
    width = cols // blocks
    scale = max(1.0, width / rows) ** 0.5 if case["scale"] == "shape" else 1.0
    for step in range(1, STEPS + 1):
        g = gradient(number, step)
        m = MOMENTUM * m + g
        d = g + MOMENTUM * m if case["nesterov"] else m
        x = np.hstack([newton_schulz(d[:, b * width:(b + 1) * width]) for b in range(blocks)])
        w = (1 - RATE * case["decay"]) * w - RATE * scale * x
    return w


def golden():
    cases = []
    for case in CASES:
        for number, (rows, cols, blocks) in enumerate(SHAPES):
            w = run(number, case)
            cases.append({"number": number, "rows": rows, "cols": cols, "blocks": blocks, **case,
                          "weights": [round(float(v), 9) for v in w.ravel()]})
    print(json.dumps({"made_by": "bench/peers/muon_peer.py golden", "steps": STEPS, "rate": RATE,
                      "momentum": MOMENTUM, "cases": cases}, separators=(",", ":")))


def check():
    import torch

    for case in CASES:
        for number, (rows, cols, blocks) in enumerate(SHAPES):
            width = cols // blocks
            start = weights(number)
            parts = [torch.tensor(start[:, b * width:(b + 1) * width].T.copy(), requires_grad=True)
                     for b in range(blocks)]
            # PyTorch's scale of "original" is sqrt(max(1, out/in)); 1 is what is left of it
            factor = max(1.0, width / rows) ** 0.5 if case["scale"] == "one" else 1.0
            optimizer = torch.optim.Muon(parts, lr=RATE / factor, momentum=MOMENTUM,
                                         weight_decay=case["decay"] * factor,
                                         nesterov=case["nesterov"], adjust_lr_fn="original")
            for step in range(1, STEPS + 1):
                g = gradient(number, step)
                for b, part in enumerate(parts):
                    part.grad = torch.tensor(g[:, b * width:(b + 1) * width].T.copy())
                optimizer.step()
            theirs = np.hstack([p.detach().numpy().T for p in parts])
            ours = run(number, case)
            off = np.linalg.norm(theirs - ours) / np.linalg.norm(ours - start)
            print(f"{rows}x{cols} in {blocks}, {case}: off by {off:.4f} of the way")
            assert off < 0.02


if __name__ == "__main__":
    {"golden": golden, "check": check}[sys.argv[1]]()

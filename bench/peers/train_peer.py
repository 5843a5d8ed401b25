#!/usr/bin/env python3
"""The language models of lipscope/train, written with PyTorch's autograd.

    train_peer.py golden            ten losses of small models, for tests/train/peer_test.cpp
    train_peer.py speed THREADS [MODEL...]
                                    characters a second at 4 layers, width 256, 8 heads,
                                    context 128, batch 32, by the clock
    train_peer.py learn TEXT MODEL STEPS
                                    validation loss after so many steps, at the defaults
                                    of `lipscope train` (random numbers differ)

Weights and text of `golden` are sines, so that both programs can make them.
"""

import json
import math
import sys
import time

from common import use_fast_allocator

use_fast_allocator()

import torch
import torch.nn.functional as F

MIXERS = ["dot", "l2", "l2-untied", "contractive-l2", "lstm"]


def shapes(c):
    """Names and shapes in the order of lipscope's layout."""
    d = c["width"]
    out = [("wte.weight", (c["characters"], d))]
    if c["mixer"] != "lstm":
        out.append(("wpe.weight", (c["context"], d)))
    norm = lambda name: [(name + ".weight", (d,)), (name + ".bias", (d,))]
    for i in range(c["layers"]):
        h = f"h.{i}."
        if c["mixer"] == "lstm":
            out += [(h[:-1] + ".in.weight", (d, 4 * d)), (h[:-1] + ".in.bias", (4 * d,)),
                    (h[:-1] + ".recurrent.weight", (d, 4 * d))]
            continue
        if c["mixer"] in ("l2", "contractive-l2"):
            out += [(h + "attn.q.weight", (d, d)), (h + "attn.v.weight", (d, d))]
        else:
            out += [(h + "attn.qkv.weight", (d, 3 * d))]
        out += [(h + "attn.o.weight", (d, d))]
        if c["norm"] != "none":
            out += norm(h + "ln_1")
        out += [(h + "mlp.up.weight", (d, c["hidden"])), (h + "mlp.up.bias", (c["hidden"],)),
                (h + "mlp.down.weight", (c["hidden"], d)), (h + "mlp.down.bias", (d,))]
        if c["norm"] != "none":
            out += norm(h + "ln_2")
    if c["mixer"] != "lstm" and c["norm"] == "pre":
        out += norm("ln_f")
    return out + [("lm_head.weight", (d, c["characters"]))]


def is_matrix(name, shape):
    return len(shape) == 2 and not name.startswith(("wte", "wpe"))


def lambert(x):
    """W0 by Newton's method."""
    w = math.log1p(x)
    for _ in range(100):
        w -= (w * math.exp(w) - x) / (math.exp(w) * (w + 1))
    return w


def contraction(q, v, o, heads, n):
    """Kim21's bound on Lip_inf of tied L2 attention."""
    d, k = q.shape[0], q.shape[1] // heads
    qh = q.reshape(d, heads, k).abs()
    rows, columns = qh.sum(2).amax(0), qh.sum(0).amax(1)
    value = v.abs().sum(0).amax()
    front = 4 * lambert((n - 1) / math.e) + 1 / math.sqrt(k)
    return front * o.abs().sum(0).amax() * (rows * columns).amax() * value


def l2_mix(q, k, v):
    """softmax(-|q - k|^2/sqrt(width)) v as a dot product with one more feature."""
    root = math.sqrt(q.shape[-1])
    q = torch.cat([2 / root * q, torch.ones_like(q[..., :1])], -1)
    k = torch.cat([k, -(k * k).sum(-1, keepdim=True) / root], -1)
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0)


def attention(c, w, h, x):
    (b, t, d), heads = x.shape, c["heads"]
    k = d // heads
    split = lambda z: z.reshape(b, t, heads, k).transpose(1, 2)
    join = lambda z: z.transpose(1, 2).reshape(b, t, d)
    o = w[h + "attn.o.weight"]
    if c["mixer"] in ("l2", "contractive-l2"):
        wq, wv = w[h + "attn.q.weight"], w[h + "attn.v.weight"]
        q = split(x @ wq)
        # P X A_h W_V W_O = (P q) M_h W_O, M_h = W_Q' W_V/sqrt(k)
        inner = torch.einsum("dhi,dhj->hij", wq.reshape(d, heads, k),
                             wv.reshape(d, heads, k)) / math.sqrt(k)
        effective = (inner @ o.reshape(heads, k, d)).reshape(d, d)
        if c["mixer"] == "contractive-l2":
            effective = effective / contraction(wq, wv, o, heads, c["context"])
            effective = effective * c.get("contraction", 1.0)
        return join(l2_mix(q, q, q)) @ effective
    q, key, v = map(split, (x @ w[h + "attn.qkv.weight"]).split(d, -1))
    if c["mixer"] == "l2-untied":
        return join(l2_mix(q, key, v)) @ o
    return join(F.scaled_dot_product_attention(q, key, v, is_causal=True)) @ o


def lstm(w, h, x):
    b, t, d = x.shape
    state = cell = torch.zeros(b, d, dtype=x.dtype)
    projected, out = x @ w[h + ".in.weight"] + w[h + ".in.bias"], []
    for step in range(t):
        i, f, g, o = (projected[:, step] + state @ w[h + ".recurrent.weight"]).chunk(4, -1)
        cell = torch.sigmoid(f + 1) * cell + torch.sigmoid(i) * torch.tanh(g)
        state = torch.sigmoid(o) * torch.tanh(cell)
        out.append(state)
    return torch.stack(out, 1)


def logits(c, w, ids):
    x = w["wte.weight"][ids]
    if c["mixer"] == "lstm":
        for i in range(c["layers"]):
            x = lstm(w, f"h.{i}", x)
        return x @ w["lm_head.weight"]
    x = x + w["wpe.weight"][: ids.shape[1]]
    norm = lambda name, z: F.layer_norm(z, z.shape[-1:], w[name + ".weight"], w[name + ".bias"])
    for i in range(c["layers"]):
        h = f"h.{i}."
        up, down = w[h + "mlp.up.weight"], w[h + "mlp.down.weight"]
        if "contraction" in c:  # no tokens are moved apart by more than this, in the inf-norm
            down = down * c["contraction"] / (up.abs().sum(0).amax() * 1.1290 *
                                              down.abs().sum(0).amax())
        mlp = lambda z: F.linear(F.gelu(F.linear(z, up.T, w[h + "mlp.up.bias"])),
                                 down.T, w[h + "mlp.down.bias"])
        for name, f in ((h + "ln_1", lambda z: attention(c, w, h, z)), (h + "ln_2", mlp)):
            if c["norm"] == "post":
                x = norm(name, x + f(x))
            elif c["norm"] == "pre":
                x = x + f(norm(name, x))
            else:
                x = x + f(x)
    if c["norm"] == "pre":
        x = norm("ln_f", x)
    return x @ w["lm_head.weight"]


class Learner:
    def __init__(self, c, weights, rate, warmup):
        self.c, self.w, self.rate, self.warmup, self.t = c, weights, rate, warmup, 0
        matrices = [p for n, p in weights.items() if is_matrix(n, p.shape)]
        others = [p for n, p in weights.items() if not is_matrix(n, p.shape)]
        self.adam = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.01},
                                       {"params": others, "weight_decay": 0.0}], lr=rate)

    def loss(self, ids, targets):
        return F.cross_entropy(logits(self.c, self.w, ids).flatten(0, 1), targets.flatten())

    def step(self, ids, targets):
        self.t += 1
        for group in self.adam.param_groups:
            group["lr"] = self.rate * min(self.t / self.warmup, math.sqrt(self.warmup / self.t))
        self.adam.zero_grad(set_to_none=True)
        loss = self.loss(ids, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(self.w.values()), 1.0)
        self.adam.step()
        return loss.item()


def sines(c):
    out = {}
    for k, (name, shape) in enumerate(shapes(c)):
        j = torch.arange(math.prod(shape), dtype=torch.float64)
        x = 0.4 * torch.sin(12.9898 * (j + 1) + 78.233 * (k + 1))
        gain = name.endswith(".weight") and len(shape) == 1
        out[name] = (x + (1.0 if gain else 0.0)).reshape(shape).requires_grad_()
    return out


def golden():
    for mixer, norm, more in [(m, "post", {}) for m in MIXERS] + [
            ("dot", "pre", {}), ("l2", "none", {}),
            ("contractive-l2", "none", {"contraction": 0.9})]:
        c = dict(mixer=mixer, norm=norm, characters=7, layers=2, width=8, heads=2, context=6,
                 hidden=16, **more)
        learner = Learner(c, sines(c), 1e-2, 4)
        losses = []
        for s in range(10):
            i = torch.arange(19) + 5 * s
            text = (i * i + 3 * i) % 7
            losses.append(learner.step(text[:18].reshape(3, 6), text[1:].reshape(3, 6)))
        print(mixer, norm, ", ".join(f"{x:.8f}" for x in losses))


def initial(c, seed):
    """As lipscope/train/initial.h has it for dot; tied L2 begins otherwise there."""
    torch.manual_seed(seed)
    out = {}
    places = c["width"] // 8 * 2
    for name, shape in shapes(c):
        if len(shape) == 1:
            x = torch.full(shape, 1.0 if ".ln_" in name and name.endswith("weight") or
                           name == "ln_f.weight" else 0.0)
        elif is_matrix(name, shape):
            x = torch.randn(shape) * math.sqrt(2 / sum(shape))
        elif name == "wpe.weight":
            f = 64.0 ** -(torch.arange(places // 2) / (places // 2 - 1))
            angles = torch.arange(shape[0])[:, None] * f
            x = torch.zeros(shape)
            x[:, 0:places:2], x[:, 1:places:2] = torch.sin(angles), torch.cos(angles)
        elif c["mixer"] == "lstm":
            x = torch.randn(shape) * 0.1
        else:
            x = torch.randn(shape) * 0.3
            x[:, :places] = 0
        out[name] = x.requires_grad_()
    return out


def usual(mixer, characters):
    return dict(mixer=mixer, norm="post", characters=characters, layers=4, width=256, heads=8,
                context=128, hidden=1024)


def speed(threads, mixers):
    torch.set_num_threads(threads)
    for mixer in mixers:
        c = usual(mixer, 65)
        learner = Learner(c, initial(c, 0), 1e-3, 100)
        text = torch.randint(65, (32, 129))
        learner.step(text[:, :-1], text[:, 1:])
        seconds = []
        for _ in range(10):
            start = time.perf_counter()
            learner.step(text[:, :-1], text[:, 1:])
            seconds.append(time.perf_counter() - start)
        print(json.dumps({"peer": "torch " + torch.__version__, "model": mixer, "threads": threads,
                          "seconds_a_step": min(seconds),
                          "characters_per_second": 32 * 128 / min(seconds)}))


def learn(path, mixer, steps, **changes):
    text = open(path, encoding="utf-8", newline="").read()
    ids = {ch: i for i, ch in enumerate(sorted(set(text)))}
    all_ids = torch.tensor([ids[ch] for ch in text])
    size = len(text)
    train, valid = all_ids[: size * 90 // 100], all_ids[size * 90 // 100: size * 95 // 100]
    c = {**usual(mixer, len(ids)), **changes}
    t = c["context"]
    learner = Learner(c, initial(c, 0), 1e-3, 100)
    for _ in range(steps):
        at = torch.randint(len(train) - t, (32,))
        window = torch.stack([train[i: i + t + 1] for i in at])
        learner.step(window[:, :-1], window[:, 1:])
    with torch.no_grad():
        total = 0.0
        for begin in range(0, len(valid) - 1, t):
            window = valid[begin: begin + t + 1]
            total += learner.loss(window[None, :-1], window[None, 1:]).item() * (len(window) - 1)
    print(json.dumps({"peer": "torch " + torch.__version__, "model": mixer, "steps": steps,
                      **changes, "valid_nll": total / (len(valid) - 1)}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["golden"]:
        golden()
    elif sys.argv[1:2] == ["speed"] and len(sys.argv) >= 3:
        speed(int(sys.argv[2]), sys.argv[3:] or ["dot", "l2"])
    elif sys.argv[1:2] == ["learn"] and len(sys.argv) >= 5:
        learn(sys.argv[2], sys.argv[3], int(sys.argv[4]),
              **{k: int(v) for k, v in (a.split("=") for a in sys.argv[5:])})
    else:
        sys.exit(__doc__)

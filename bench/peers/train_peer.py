#!/usr/bin/env python3
"""The language models of lipscope/train, written with PyTorch's autograd.

    train_peer.py golden            prints tests/train/golden/ten_steps.json: ten losses of small
                                    models, which tests/train/peer_test.cpp compares with
    train_peer.py speed THREADS [MODEL...]
                                    characters a second at 4 layers, width 256, 8 heads,
                                    context 128, batch 32, by the clock, with every setting
                                    of PyTorch for products
    train_peer.py turns PROGRAM THREADS COUNT
                                    the same in turns with PROGRAM, which is
                                    build/release/bench/train_bench: ratios of the speeds, for
                                    every precision of lipscope and every setting of PyTorch
    train_peer.py learn TEXT MODEL STEPS
                                    validation loss after so many steps, at the defaults
                                    of `lipscope train` (random numbers differ)

Weights and text of `golden` are sines, so that both programs can make them.
"""

import json
import math
import statistics
import subprocess
import sys
import time

from common import use_fast_allocator

use_fast_allocator()

import torch
import torch.nn.functional as F

import muon_peer
import train_limits

MIXERS = ["dot", "l2", "l2-untied", "contractive-l2", "lstm"]


def shapes(c):
    """Names and shapes in the order of lipscope's layout."""
    d = c["width"]
    if c["mixer"] == "lstm":
        out = [("wte.weight", (c["characters"], d))]
        for i in range(c["layers"]):
            out += [(f"h.{i}.in.weight", (d, 4 * d)), (f"h.{i}.in.bias", (4 * d,)),
                    (f"h.{i}.recurrent.weight", (d, 4 * d))]
        return out + [("lm_head.weight", (d, c["characters"]))]
    positions, heads = c["position_heads"], c["heads"]
    comparing = d // heads * (heads - positions)
    norm = lambda name: [(name + ".weight", (d,)), (name + ".bias", (d,))]
    out = [("wte.weight", (c["characters"], d))]
    if c["positions"] == "table":
        out.append(("wpe.weight", (c["context"], d)))
    for i in range(c["layers"]):
        h = f"h.{i}."
        if positions:
            out += [(h + "attn.p.bias", (positions, c["context"])),
                    (h + "attn.p.v.weight", (d, d // heads * positions))]
        if c["mixer"] in ("l2", "contractive-l2"):
            out += [(h + "attn.q.weight", (d, comparing)), (h + "attn.v.weight", (d, comparing))]
        elif c["mixer"] != "position":
            out += [(h + "attn.qkv.weight", (d, 3 * comparing))]
        out += [] if c["heads_apart"] else [(h + "attn.o.weight", (d, d))]
        if c["positions"] == "relative":
            out += [(h + "attn.distance_bias", (heads - positions, c["context"]))]
        out += [(h + "attn.share", (1, heads))] if c["heads_apart"] else []
        if c["norm"] != "none":
            out += norm(h + "ln_1")
        out += [(h + "mlp.up.weight", (d, c["hidden"])), (h + "mlp.up.bias", (c["hidden"],)),
                (h + "mlp.down.weight", (c["hidden"], d)), (h + "mlp.down.bias", (d,))]
        if c["norm"] != "none":
            out += norm(h + "ln_2")
    if c["norm"] == "pre":
        out += norm("ln_f")
    out.append(("lm_head.weight", (d, c["characters"])))
    return out + ([("lm_head.bias", (c["characters"],))] if c["head_bias"] else [])


def is_matrix(name, shape):
    return (len(shape) == 2 and name.endswith(".weight") and
            not name.startswith(("wte", "wpe")))


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


def coordinate_contractions(q, effective, heads, n, bias):
    """Bounds on the constants of the coordinates of tied L2 attention in the inf-norm, [d]:
    sum_h 4 p_h N_h |E_h e_j|_2 + |Q_h E_h e_j|_1, N_h^2 = sum |Q_h Q_h'|. The derivative of
    Lambert's function of e^(s-1) by s is p/(1 + p)."""
    d, k = q.shape[0], q.shape[1] // heads
    qh, eh = q.reshape(d, heads, k).transpose(0, 1), effective.reshape(heads, k, -1)
    if bias is None:
        p = torch.full((heads,), lambert((n - 1) / math.e), dtype=q.dtype)
    else:
        s = bias[:, 1:].logsumexp(1) - bias[:, 0]
        at = torch.tensor([lambert(math.exp(x - 1)) for x in s.tolist()], dtype=q.dtype)
        p = at + at / (1 + at) * (s - s.detach())
    compared = (qh @ qh.transpose(1, 2)).abs().sum((1, 2)).sqrt()
    return ((4 * p * compared)[:, None] * eh.norm(dim=1) + (qh @ eh).abs().sum(1)).sum(0)


FUSED = hasattr(F, "scaled_dot_product_attention")  # PyTorch 2


def mix(q, k, v, bias=None):
    """softmax(q k' + b_{i-j}) v under the causal mask; bias [heads, distances]."""
    if FUSED and bias is None:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0)
    t = q.shape[-2]
    distance = torch.arange(t)[:, None] - torch.arange(t)
    scores = q @ k.transpose(-1, -2)
    if bias is not None:
        scores = scores + bias[:, distance.clamp(min=0)]
    return scores.masked_fill(distance < 0, -math.inf).softmax(-1) @ v


def l2_mix(q, k, v, bias=None):
    """softmax(-|q - k|^2/sqrt(width) + b_{i-j}) v as a dot product with one more feature."""
    root = math.sqrt(q.shape[-1])
    q = torch.cat([2 / root * q, torch.ones_like(q[..., :1])], -1)
    k = torch.cat([k, -(k * k).sum(-1, keepdim=True) / root], -1)
    return mix(q, k, v, bias)


def rotated(z):
    """Rotary positions: features i and i + k/2 turn by position times 10000^(-2i/k)."""
    t, half = z.shape[-2], z.shape[-1] // 2
    angles = torch.arange(t)[:, None] * 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
    turn = torch.polar(torch.ones_like(angles), angles)
    z = torch.complex(z[..., :half], z[..., half:]) * turn.to(
        torch.complex128 if z.dtype == torch.float64 else torch.complex64)
    return torch.cat([z.real, z.imag], -1)


def comparing_heads(c, w, h, x):
    """[b, H, t, k] of the heads that compare, and of tied ones what W_O has to read,
    [P_h q_h] with the matrices M_h = W_Q' W_V/sqrt(k) that follow:
    P X A_h W_V = (P q) M_h, A_h = W_Q W_Q'/sqrt(k)."""
    b, t, d = x.shape
    k = d // c["heads"]
    heads = c["heads"] - c["position_heads"]
    split = lambda z: z.reshape(b, t, heads, k).transpose(1, 2)
    bias = w[h + "attn.distance_bias"] if c["positions"] == "relative" else None
    if c["mixer"] in ("l2", "contractive-l2"):
        wq, wv = w[h + "attn.q.weight"], w[h + "attn.v.weight"]
        q = split(x @ wq)
        inner = torch.einsum("dhi,dhj->hij", wq.reshape(d, heads, k),
                             wv.reshape(d, heads, k)) / math.sqrt(k)
        return l2_mix(q, q, q, bias), inner
    q, key, v = map(split, (x @ w[h + "attn.qkv.weight"]).chunk(3, -1))
    if c["mixer"] == "l2-untied":
        return l2_mix(q, key, v, bias), None
    if c["positions"] == "rotary":
        q, key = rotated(q), rotated(key)
    return mix(q / math.sqrt(k), key, v, bias), None


def position_heads(c, w, h, x):
    """[b, P, t, k]: y_i = sum_s p_s x_(i-s) V_h."""
    (b, t, d), heads = x.shape, c["position_heads"]
    v = (x @ w[h + "attn.p.v.weight"]).reshape(b, t, heads, d // c["heads"])
    p = torch.softmax(w[h + "attn.p.bias"], -1)
    y = torch.zeros_like(v)
    for distance in range(t):
        moved = F.pad(v, (0, 0, 0, 0, distance, 0))[:, :t]
        y = y + p[:, distance, None] * moved
    return y.transpose(1, 2)


def attention(c, w, h, x):
    b, t, d = x.shape
    join = lambda z: z.transpose(1, 2).reshape(b, t, -1)
    if c["heads_apart"]:
        parts = [position_heads(c, w, h, x)] if c["position_heads"] else []
        if c["mixer"] != "position":
            mixed, inner = comparing_heads(c, w, h, x)
            parts.append(mixed if inner is None else mixed @ inner)
        share = torch.softmax(w[h + "attn.share"][0], 0).sqrt()
        return join(torch.cat(parts, 1) * share[:, None, None])
    o = w[h + "attn.o.weight"]
    mixed, inner = comparing_heads(c, w, h, x)
    if inner is None:
        return join(mixed) @ o
    effective = (inner @ o.reshape(c["heads"], d // c["heads"], d)).reshape(d, d)
    if c.get("division") == "coordinate":
        bias = w[h + "attn.distance_bias"] if c["positions"] == "relative" else None
        bound = coordinate_contractions(w[h + "attn.q.weight"], effective, c["heads"],
                                        c["context"], bias)
        effective = effective / bound * c.get("contraction", 1.0)
    elif c["mixer"] == "contractive-l2":
        bound = contraction(w[h + "attn.q.weight"], w[h + "attn.v.weight"], o, c["heads"],
                            c["context"])
        effective = effective / bound * c.get("contraction", 1.0)
    return join(mixed) @ effective


def activated(c, z):
    if c["activation"] == "max_min":  # of features j and j + m/2
        first, second = z.chunk(2, -1)
        return torch.cat([torch.maximum(first, second), torch.minimum(first, second)], -1)
    return F.gelu(z)


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
    if c["positions"] == "table":
        x = x + w["wpe.weight"][: ids.shape[1]]
    norm = lambda name, z: F.layer_norm(z, z.shape[-1:], w[name + ".weight"], w[name + ".bias"])
    for i in range(c["layers"]):
        h = f"h.{i}."
        up, down = w[h + "mlp.up.weight"], w[h + "mlp.down.weight"]
        if "contraction" in c:  # no tokens are moved apart by more than this, in the inf-norm
            down = down * c["contraction"] / (up.abs().sum(0).amax() * 1.1290 *
                                              down.abs().sum(0).amax())
        mlp = lambda z: F.linear(activated(c, F.linear(z, up.T, w[h + "mlp.up.bias"])),
                                 down.T, w[h + "mlp.down.bias"])
        for name, f in ((h + "ln_1", lambda z: attention(c, w, h, z)), (h + "ln_2", mlp)):
            if c["residual"] == "none":
                x = f(x)
            elif c["residual"] == "convex":
                x = (1 - c["residual_share"]) * x + c["residual_share"] * f(x)
            elif c["norm"] == "post":
                x = norm(name, x + f(x))
            elif c["norm"] == "pre":
                x = x + f(norm(name, x))
            else:
                x = x + f(x)
    if c["norm"] == "pre":
        x = norm("ln_f", x)
    x = x @ w["lm_head.weight"]
    return x + w["lm_head.bias"] if c["head_bias"] else x


def course(t, warmup, after, steps):
    """What the largest rate is multiplied with at step t = 1, 2, ...: up on a line for
    `warmup` steps, then down as 1/sqrt(t), or on a line to 0 one step after the last, or not."""
    warmup = max(1, warmup)
    if t < warmup:
        return t / warmup
    return {"inverse-sqrt": math.sqrt(warmup / t), "fixed": 1.0,
            "linear": (steps + 1 - t) / (steps + 1 - warmup)}[after]


class Learner:
    """`training` may have schedule and steps, optimizer and muon_rate, and the limits of
    train_limits.py."""

    def __init__(self, c, weights, rate, warmup, **training):
        self.c, self.w, self.rate, self.warmup, self.t = c, weights, rate, warmup, 0
        self.training = training
        matrices = {n: p for n, p in weights.items() if is_matrix(n, p.shape)}
        others = [p for n, p in weights.items() if n not in matrices]
        self.momentum = {}
        if training.get("optimizer") == "muon":
            self.momentum, matrices = {n: torch.zeros_like(p) for n, p in matrices.items()}, {}
        self.adam = torch.optim.AdamW([{"params": list(matrices.values()), "weight_decay": 0.01},
                                       {"params": others, "weight_decay": 0.0}], lr=rate)

    def loss(self, ids, targets):
        return F.cross_entropy(logits(self.c, self.w, ids).flatten(0, 1), targets.flatten())

    @torch.no_grad()
    def muon_step(self, now):
        """Nesterov's momentum, and singular values by muon_peer.py."""
        for name, m in self.momentum.items():
            p = self.w[name]
            m.mul_(0.95).add_(p.grad)
            direction = p.grad + 0.95 * m
            blocks = train_limits.blocks_of(self.c, name)
            # heads that compare are kept at norms far from 1, and move in parts of their size
            by_size = "singular_values" in self.training and train_limits.of_comparing_heads(name)
            size = [(b.norm() / math.sqrt(min(b.shape))).item() if by_size else 1.0
                    for b in p.chunk(blocks, 1)]
            p -= self.training["muon_rate"] * now * train_limits.in_blocks(
                direction, blocks,
                lambda b, i: size[i] * torch.from_numpy(muon_peer.newton_schulz(b.numpy())))

    def step(self, ids, targets):
        self.t += 1
        now = course(self.t, self.warmup, self.training.get("schedule", "inverse-sqrt"),
                     self.training.get("steps", 0))
        for group in self.adam.param_groups:
            group["lr"] = self.rate * now
        self.adam.zero_grad(set_to_none=True)
        for name in self.momentum:
            self.w[name].grad = None
        loss = self.loss(ids, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(self.w.values()), 1.0)
        self.muon_step(now)
        self.adam.step()
        train_limits.keep_within(self.c, self.w, self.training)
        return loss.item()


def sines(c):
    """Of squares, as those of a line would make matrices of rank two."""
    out = {}
    for k, (name, shape) in enumerate(shapes(c)):
        j = torch.arange(math.prod(shape), dtype=torch.float64) + 1
        x = 0.4 * torch.sin(0.37 * j * j + 78.233 * (k + 1))
        gain = name.endswith(".weight") and len(shape) == 1
        out[name] = (x + (1.0 if gain else 0.0)).reshape(shape).requires_grad_()
    return out


def model(**changes):
    """With the defaults of `lipscope train`."""
    return {**dict(norm="post", position_heads=0, heads_apart=False, positions="table",
                   residual="add", residual_share=1.0, head_bias=False, activation="gelu"),
            **changes}


# name, what is different in the model, what is different in the training
POSITION = dict(mixer="position", position_heads=2, heads_apart=True)
RELATIVE = dict(mixer="contractive-l2", division="coordinate", positions="relative")
BESIDE = dict(width=12, heads=3, position_heads=1, heads_apart=True)
PLAIN = dict(norm="none", positions="none", residual="none", activation="max_min")
NEWHOUSE = dict(mixer="dot", norm="none", positions="rotary", residual="convex",
                residual_share=0.25, hidden=32)
ALL = dict(**PLAIN, mixer="position", layers=3, width=16, heads=4, position_heads=4,
           heads_apart=True, hidden=32, head_bias=True)
CASES = [(m, dict(mixer=m), {}) for m in MIXERS] + [
    ("dot, pre-norm", dict(mixer="dot", norm="pre"), {}),
    ("l2 without norms", dict(mixer="l2", norm="none"), {}),
    ("invertible", dict(mixer="contractive-l2", norm="none", contraction=0.9), {}),
    ("divided by coordinate", dict(mixer="contractive-l2", division="coordinate"), {}),
    ("relative, divided by coordinate", dict(RELATIVE, norm="post"), {}),
    ("relative, divided by coordinate, pre-norm, muon", dict(RELATIVE, norm="pre"),
     dict(optimizer="muon", muon_rate=0.02)),
    ("invertible, divided by coordinate",
     dict(mixer="contractive-l2", division="coordinate", norm="none", contraction=0.9), {}),
    ("position heads", POSITION, {}),
    ("dot apart", dict(mixer="dot", heads_apart=True), {}),
    ("l2 apart", dict(mixer="l2", heads_apart=True), {}),
    ("dot beside position heads", dict(mixer="dot", **BESIDE), {}),
    ("l2 beside position heads", dict(mixer="l2", **BESIDE), {}),
    ("l2-untied beside position heads", dict(mixer="l2-untied", **BESIDE), {}),
    ("max_min", dict(mixer="dot", activation="max_min"), {}),
    ("residual convex", dict(mixer="dot", norm="none", residual="convex", residual_share=0.3), {}),
    ("residual none", dict(mixer="dot", norm="none", residual="none"), {}),
    ("rotary", dict(mixer="dot", positions="rotary"), {}),
    ("rotary beside position heads", dict(mixer="dot", positions="rotary", **BESIDE), {}),
    ("no positions", dict(mixer="dot", positions="none"), {}),
    ("relative, dot", dict(mixer="dot", positions="relative"), {}),
    ("relative, l2 without norms", dict(mixer="l2", norm="none", positions="relative"), {}),
    ("relative, l2-untied beside position heads",
     dict(mixer="l2-untied", positions="relative", **BESIDE), {}),
    ("head bias", dict(mixer="dot", head_bias=True), {}),
    ("linear decay", dict(mixer="dot"), dict(schedule="linear", steps=11)),
    ("fixed rate", dict(mixer="dot"), dict(schedule="fixed")),
    ("muon, dot", dict(mixer="dot"), dict(optimizer="muon", muon_rate=0.02)),
    ("muon, l2 beside position heads", dict(mixer="l2", **BESIDE),
     dict(optimizer="muon", muon_rate=0.02)),
    ("spectral cap", dict(mixer="dot"), dict(spectral_cap=0.8)),
    ("cap", dict(mixer="dot", norm="none"), dict(singular_values="cap", promise="token")),
    ("soft", dict(mixer="dot", norm="none"), dict(singular_values="soft", promise="token")),
    ("normalise", dict(mixer="dot", norm="none"), dict(singular_values="normalise", promise="token")),
    ("soft, l2 beside position heads", dict(mixer="l2", norm="none", **BESIDE),
     dict(singular_values="soft", promise="token")),
    ("soft, relative, l2 beside position heads",
     dict(mixer="l2", norm="none", positions="relative", **BESIDE),
     dict(singular_values="soft", promise="token")),
    ("muon, soft, dot beside position heads", dict(mixer="dot", norm="none", **BESIDE),
     dict(optimizer="muon", muon_rate=0.02, singular_values="soft", promise="token")),
    ("longest token", dict(mixer="dot", norm="none", positions="none"), dict(longest_token=0.5)),
    ("limit of scores", dict(mixer="dot", norm="none", positions="rotary", **BESIDE),
     dict(singular_values="cap", longest_token=0.8, score_limit=0.25, promise="token")),
    ("promise token", dict(POSITION, **PLAIN),
     dict(singular_values="cap", max_lipschitz=1.0, promise="token")),
    ("promise 2", dict(POSITION, **PLAIN),
     dict(singular_values="cap", max_lipschitz=1.0, promise="2")),
    ("promise token, gelu, residual convex",
     dict(POSITION, norm="none", residual="convex", residual_share=0.3),
     dict(singular_values="soft", max_lipschitz=1.0, promise="token")),
    ("promise 2, gelu, residual add", dict(POSITION, norm="none"),
     dict(singular_values="normalise", max_lipschitz=4.0, promise="2")),
    ("zero outputs", dict(mixer="dot", norm="pre"), dict(zero_outputs=True)),
    ("newhouse25's limits", NEWHOUSE, dict(singular_values="soft", matrix_limits="newhouse25")),
    ("newhouse25's limits, capped", NEWHOUSE,
     dict(singular_values="cap", matrix_limits="newhouse25")),
    ("newhouse25", NEWHOUSE,
     dict(begin=True, zero_outputs=True, rate=0.02, warmup=0, schedule="linear", steps=10,
          optimizer="muon", muon_rate=0.05, singular_values="soft", matrix_limits="newhouse25",
          longest_token=math.sqrt(8))),
    ("all", ALL, dict(begin=True, rate=0.02, warmup=0, schedule="linear", steps=10,
                      optimizer="muon", muon_rate=0.05, singular_values="soft", longest_token=2.0,
                      max_lipschitz=1.5, promise="token"))]


def golden():
    cases = []
    for name, of_model, of_training in CASES:
        c = model(**{**dict(characters=7, layers=2, width=8, heads=2, context=6, hidden=16),
                     **of_model})
        training = {**dict(rate=1e-2, warmup=4), **of_training}
        learner = Learner(c, sines(c), **training)
        if training.get("zero_outputs"):
            train_limits.make_outputs_zero(learner.w)
        if training.get("begin"):
            train_limits.begin_within(c, learner.w, training)
        losses = []
        for s in range(10):
            i = torch.arange(19) + 5 * s
            text = (i * i + 3 * i) % 7
            losses.append(round(learner.step(text[:18].reshape(3, 6), text[1:].reshape(3, 6)), 8))
        cases.append({"name": name, "model": c, "training": training, "losses": losses})
    print('{"made_by": "bench/peers/train_peer.py golden", "cases": [\n' +
          ",\n".join(map(json.dumps, cases)) + "\n]}")


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
    return model(mixer=mixer, characters=characters, layers=4, width=256, heads=8, context=128,
                 hidden=1024)


# what PyTorch offers for f32 models: its default, a setting that lets products round their
# factors to bf16, and autocast, which also keeps activations in bf16
SETTINGS = ("f32", "medium", "autocast")


class Stepper:
    """A model of usual size whose steps are timed, by the clock and by the CPU time of all threads."""

    def __init__(self, mixer):
        c = usual(mixer, 65)
        self.learner = Learner(c, initial(c, 0), 1e-3, 100)
        self.text = torch.randint(65, (32, 129))

    def best(self, steps, setting="f32"):
        """Seconds of the fastest of these steps, and CPU seconds of the cheapest; one step more
        first, to warm up."""
        torch.set_float32_matmul_precision("medium" if setting == "medium" else "highest")
        wall, cpu = [], []
        for _ in range(1 + steps):
            start, cpu_start = time.perf_counter(), time.process_time()
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=setting == "autocast"):
                self.learner.step(self.text[:, :-1], self.text[:, 1:])
            wall.append(time.perf_counter() - start)
            cpu.append(time.process_time() - cpu_start)
        return min(wall[1:]), min(cpu[1:])


def speed(threads, mixers):
    torch.set_num_threads(threads)
    for mixer in mixers:
        for setting in SETTINGS:
            seconds, cpu = Stepper(mixer).best(10, setting)
            print(json.dumps({"peer": "torch " + torch.__version__, "model": mixer,
                              "setting": setting, "threads": threads, "fused_attention": FUSED,
                              "seconds_a_step": seconds, "cpu_seconds_a_step": cpu,
                              "characters_per_second": 32 * 128 / seconds}), flush=True)


def turns(program, threads, count):
    """lipscope (bench/train_bench.cpp) and PyTorch in turns of a few steps, the best step of
    each turn; ratios are those of one turn each."""
    torch.set_num_threads(threads)
    precisions = ("full", "high", "bf16")
    products = {}

    def lipscope(mixer, precision):
        number = ["dot", "l2"].index(mixer)
        text = subprocess.run(
            [program, f"--benchmark_filter=^step/model:{number}/threads:{threads}/"
             f"precision:{precisions.index(precision)}/",
             "--benchmark_min_time=1", "--benchmark_format=json"],
            check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        found = json.loads(text)["benchmarks"][0]
        asked, products[precision] = found["label"].split(": ")
        assert asked == f"{mixer}, {precision}"
        return found["seconds_a_step"], found["cpu_seconds_a_step"]

    for mixer in ("dot", "l2"):
        stepper = Stepper(mixer)
        # of each turn, seconds by the clock and of the CPU
        ours, theirs = {p: [] for p in precisions}, {s: [] for s in SETTINGS}
        for _ in range(count):
            for setting in SETTINGS:
                theirs[setting].append(stepper.best(3, setting))
            for precision in precisions:
                ours[precision].append(lipscope(mixer, precision))
        for by, clock in enumerate(("wall", "cpu")):
            for precision in precisions:
                for setting in SETTINGS:
                    a = [t[by] for t in theirs[setting]]
                    b = [o[by] for o in ours[precision]]
                    ratios = sorted(x / y for x, y in zip(a, b))
                    print(json.dumps({
                        "model": mixer, "threads": threads, "clock": clock,
                        "lipscope_precision": precision, "lipscope_products": products[precision],
                        "peer": "torch " + torch.__version__, "peer_setting": setting,
                        "lipscope_characters_per_second": 32 * 128 / statistics.median(b),
                        "peer_characters_per_second": 32 * 128 / statistics.median(a),
                        "ratio_median": statistics.median(ratios), "ratio_least": ratios[0],
                        "ratio_most": ratios[-1], "turns": count}), flush=True)


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
    elif sys.argv[1:2] == ["turns"] and len(sys.argv) == 5:
        turns(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    elif sys.argv[1:2] == ["learn"] and len(sys.argv) >= 5:
        learn(sys.argv[2], sys.argv[3], int(sys.argv[4]),
              **{k: int(v) for k, v in (a.split("=") for a in sys.argv[5:])})
    else:
        sys.exit(__doc__)

"""What keeps the weights of lipscope's models within limits after every step, by SVD.

Written from the formulas of docs/training.md and of the headers that are named below.
A model is a dict `c` (train_peer.py), its weights a dict of f64 tensors [in, out].
lipscope proves norms from above where an SVD has them exactly; the two differ by a
relative 1e-5 at most (train/singular_values.h), which these functions leave out.
"""

import math

import torch

# What lipscope leaves between a promised constant and the one it aims at
# (train/weight_limits.h).
ROOM_FOR_PROOF = 1e-4

SLOPE = {"gelu": 1.1290, "max_min": 1.0}  # max |act'|


def norm(m):
    return torch.linalg.matrix_norm(m, 2)


def by_rule(m, rule, limit):
    """train/singular_values.h, on the singular values themselves; zeros stay."""
    if not m.any():
        return m
    u, s, vt = torch.linalg.svd(m, full_matrices=False)
    s = s / limit
    if rule == "cap":
        s = s / max(1.0, s.max())
    elif rule == "soft":
        if s.max() > math.sqrt(3):
            s = s / s.max()
        s = 1.5 * s - 0.5 * s**3
    elif rule == "normalise":
        s = torch.ones_like(s)
    return limit * (u * s) @ vt


def in_blocks(m, blocks, change):
    """change(block, number) of matrices that stand side by side."""
    return torch.cat([change(b, i) for i, b in enumerate(m.chunk(blocks, 1))], 1)


def blocks_of(c, name):
    """How many matrices stand side by side in a tensor: one for each head."""
    comparing = c["heads"] - c["position_heads"]
    if name.endswith("attn.p.v.weight"):
        return c["position_heads"]
    if name.endswith("attn.qkv.weight"):
        return 3 * comparing
    if name.endswith(("attn.q.weight", "attn.v.weight")):
        return comparing
    return 1


def of_comparing_heads(name):
    return name.endswith((".attn.qkv.weight", ".attn.q.weight", ".attn.v.weight"))


def layers_constant(c, w, promise):
    """Of all layers, theory/stack_constant.h; of models of position heads alone."""
    assert c["mixer"] == "position" and c["norm"] == "none"
    constant = 1.0
    share = {"add": 1.0, "convex": c["residual_share"], "none": 1.0}[c["residual"]]
    carry = {"add": 1.0, "convex": 1 - c["residual_share"], "none": 0.0}[c["residual"]]
    for i in range(c["layers"]):
        h = f"h.{i}."
        # the weights of distances sum to 1
        parts = torch.softmax(w[h + "attn.share"][0], 0).sqrt()
        values = [a * v for a, v in zip(parts, w[h + "attn.p.v.weight"].chunk(c["heads"], 1))]
        heads = (norm(torch.cat(values, 1)) if promise == "2"
                 else math.sqrt(sum(norm(v) ** 2 for v in values)))
        up, down = w[h + "mlp.up.weight"], w[h + "mlp.down.weight"]
        both = norm(up) * norm(down)
        mlp = carry + share * SLOPE[c["activation"]] * both
        if c["activation"] != "max_min":  # theory/centred_slopes.h
            centre = norm(carry * torch.eye(c["width"], dtype=up.dtype) + share / 2 * up @ down)
            mlp = min(mlp, centre + share * (SLOPE[c["activation"]] - 0.5) * both)
        constant *= (carry + share * heads) * mlp
    return constant


def lemma(masses):
    """p e^(p+1) = masses, by Newton's method (theory/relative_positions.h)."""
    p = math.log1p(masses)
    for _ in range(100):
        p -= (p * math.exp(p + 1) - masses) / ((p + 1) * math.exp(p + 1))
    return p


def limit_comparing_heads(c, w, h, limits, rule, radius):
    """Queries and keys by what their scores may be, values by what the head then costs in
    the token norm (theory/row_sums.h; with relative positions theory/relative_positions.h)."""
    assert limits["promise"] == "token"
    heads = c["heads"] - c["position_heads"]
    tied = c["mixer"] == "l2"
    names = ["q", "v"] if tied else ["qkv"]
    parts = sum((list(w[h + f"attn.{n}.weight"].chunk(heads * (1 if tied else 3), 1))
                 for n in names), [])
    bias = (w[h + "attn.distance_bias"] if c["positions"] == "relative"
            else torch.zeros(heads, c["context"], dtype=torch.float64))
    for i in range(heads):
        root = math.sqrt(parts[i].shape[1])
        both = [i] if tied else [i, heads + i]
        if not radius:
            for j in both:
                parts[j] = by_rule(parts[j], rule, 1.0)
        q, k = parts[both[0]], parts[both[-1]]
        product = norm(q) * norm(k) if c["positions"] == "rotary" else norm(q @ k.T)
        size = float(product) * (radius or 1.0) ** 2 / root
        if radius and size > limits.get("score_limit", 1.0):
            for j in both:
                parts[j] = parts[j] * math.sqrt(limits.get("score_limit", 1.0) / size)
            size = limits.get("score_limit", 1.0)
        cost, value = 1 + 2 * size, parts[-heads + i]
        if tied:
            q = parts[i]
            p = lemma(float((bias[i, 1:] - bias[i, 0]).exp().sum()))
            through = norm(q.T @ value) if c["positions"] == "relative" else norm(q) * norm(value)
            cost = float((4 * p + 1) / root * norm(q) * through / norm(value))
        parts[-heads + i] = by_rule(value, rule, 1 / cost)
    whole = torch.cat(parts, 1).chunk(len(names), 1)
    for n, matrix in zip(names, whole):
        w[h + f"attn.{n}.weight"].data = matrix.contiguous()


def newhouse25_limits(c, w, rule):
    """train/newhouse25_limits.h: q, k and v each one matrix for all heads; MLPs without biases."""
    k, wider = c["width"] // c["heads"], math.sqrt(c["hidden"] / c["width"])
    for i in range(c["layers"]):
        h = f"h.{i}."
        of = {"attn.o": [1.0], "attn.qkv": [k**-0.25, k**-0.25, 1 / 3], "mlp.up": [wider],
              "mlp.down": [1 / (wider * SLOPE["gelu"])]}
        for name, norms in of.items():
            m = w[h + name + ".weight"]
            m.data = in_blocks(m.data, len(norms), lambda b, j: by_rule(b, rule, norms[j]))
        for bias in ("up", "down"):
            w[h + f"mlp.{bias}.bias"].data.zero_()


def limit_matrices(c, w, limits, rule):
    """All matrices but the head's, train/weight_limits.h."""
    if limits.get("matrix_limits") == "newhouse25":
        return newhouse25_limits(c, w, rule)
    radius = limits.get("longest_token")
    for i in range(c["layers"]):
        h = f"h.{i}."
        for name in [n for n in w if n.startswith(h) and n.endswith(".weight") and w[n].dim() == 2]:
            if of_comparing_heads(name):
                continue
            limit = 1 / SLOPE[c["activation"]] if "mlp.down" in name else 1.0
            w[name].data = in_blocks(w[name].data, blocks_of(c, name),
                                     lambda m, _: by_rule(m, rule, limit))
        if c["mixer"] != "position":
            limit_comparing_heads(c, w, h, limits, rule, radius)
        if radius:  # x + f(x) and biases make tokens longer from layer to layer
            biases = (w[h + "mlp.up.bias"].norm() + w[h + "mlp.down.bias"].norm()).item()
            radius = {"add": 4 * radius + biases, "none": radius + biases,
                      "convex": radius + c["residual_share"] * biases}[c["residual"]]


def limit_head(c, w, limits, rule):
    """What the layers leave of the promised constant is the head's."""
    left = limits["max_lipschitz"] / layers_constant(c, w, limits["promise"])
    head = w["lm_head.weight"]
    head.data = by_rule(head.data, rule, float(left) * (1 - ROOM_FOR_PROOF))


def shorten_rows(table, longest, all_rows=False):
    lengths = table.norm(dim=1, keepdim=True)
    factor = longest / lengths
    return table * (factor if all_rows else factor.clamp(max=1.0))


@torch.no_grad()
def keep_within(c, w, limits):
    if "spectral_cap" in limits:
        for name, m in w.items():
            if m.dim() == 2 and name.endswith(".weight") and not name.startswith(("wte", "wpe")):
                m.data = by_rule(m.data, "cap", limits["spectral_cap"])
    if "longest_token" in limits:
        w["wte.weight"].data = shorten_rows(w["wte.weight"].data, limits["longest_token"])
    if "singular_values" in limits:
        limit_matrices(c, w, limits, limits["singular_values"])
        if "max_lipschitz" in limits:
            limit_head(c, w, limits, limits["singular_values"])


@torch.no_grad()
def begin_within(c, w, limits):
    """Under a rule and with tokens of limited length: orthogonal matrices, full-length tokens."""
    w["wte.weight"].data = shorten_rows(w["wte.weight"].data, limits["longest_token"], True)
    limit_matrices(c, w, limits, "normalise")
    if "max_lipschitz" in limits:
        limit_head(c, w, limits, "normalise")
    keep_within(c, w, limits)


@torch.no_grad()
def make_outputs_zero(w):
    """train/zero_outputs.h"""
    for name, m in w.items():
        if name.endswith((".attn.o.weight", ".mlp.down.weight")):
            m.zero_()

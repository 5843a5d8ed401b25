#!/usr/bin/env python3
"""An independent attack beside that of `lipscope certify`: projected gradient ascent with restarts, in PyTorch.

    lipscope certify DIR --text TEXT --positions 128 --out records.jsonl
    peers-venv/bin/python bench/peers/certify_peer.py records.jsonl

reads the records, the model (a folder of `lipscope train`) and the text they name, and looks at every position for
the smallest change of the embedded text that changes the prediction. At a radius r, each start goes up the gradient of
the margin max_b z_b - z_a, steps of 2.5 r / steps along its direction, and is projected to the ball of radius r: half
of the starts ascend that margin, the others that of one of the nearest characters each. The radius is halved
geometrically between one where no start succeeded and the smallest change found; a change that was found is first
shortened along its ray. What is counted was evaluated in f64.

Printed: at how many positions the change of `lipscope certify` is at least as near (within --within), and by how much
it is nearer or farther; exit code 1 where that is less than --share of them.
"""

import argparse
import json
import pathlib
import sys

import safetensors.torch
import torch
import torch.nn.functional as F

# ---- the model, from its folder


def load(folder):
    folder = pathlib.Path(folder)
    c = json.loads((folder / "config.json").read_text())
    w = {k: v.double() for k, v in safetensors.torch.load_file(folder / "model.safetensors").items()}
    return c, {k: v.reshape(-1) if ".ln_" in k or k.startswith("ln_f") or k.endswith("bias") else v for k, v in w.items()}


def attention(c, w, h, x):
    (b, t, d), heads = x.shape, c["num_heads"]
    k = d // heads

    def split(z):
        return z.reshape(b, t, heads, k).transpose(1, 2)

    hidden = torch.ones(t, t, dtype=torch.bool).triu(1)
    if c["mixer"] == "l2":
        wq, wv, wo = (w[h + f"attn.{name}.weight"] for name in "qvo")
        q = split(x @ wq)
        # |q_i - q_j|^2
        square = q.square().sum(-1)
        far = square.unsqueeze(3) + square.unsqueeze(2) - 2 * q @ q.transpose(2, 3)
        p = (-far / k**0.5).masked_fill(hidden, -torch.inf).softmax(-1)
        # head h: P X (W_Q W_Q'/sqrt k) W_V W_O
        mixed = p @ q
        inner = torch.einsum("dhi,dhj->hij", wq.reshape(d, heads, k), wv.reshape(d, heads, k)) / k**0.5
        return (mixed @ inner).transpose(1, 2).reshape(b, t, d) @ wo
    q, key, v = (split(z) for z in (x @ w[h + "attn.qkv.weight"]).split(d, -1))
    p = (q @ key.transpose(2, 3) / k**0.5).masked_fill(hidden, -torch.inf).softmax(-1)
    return (p @ v).transpose(1, 2).reshape(b, t, d) @ w[h + "attn.o.weight"]


def logits(c, w, x):
    """[b, t, d], the input of layer 0 -> [b, t, V]."""
    def norm(name, z):
        return F.layer_norm(z, z.shape[-1:], w[name + ".weight"], w[name + ".bias"])

    for i in range(c["num_layers"]):
        h = f"h.{i}."

        def mlp(z):
            return F.gelu(z @ w[h + "mlp.up.weight"] + w[h + "mlp.up.bias"]) @ w[h + "mlp.down.weight"] + w[
                h + "mlp.down.bias"]

        for name, f in ((h + "ln_1", lambda z: attention(c, w, h, z)), (h + "ln_2", mlp)):
            if c["norm"] == "pre":
                x = x + f(norm(name, x))
            elif c["norm"] == "post":
                x = norm(name, x + f(x))
            else:
                x = x + f(x)
    if c["norm"] == "pre":
        x = norm("ln_f", x)
    return x @ w["lm_head.weight"]


# ---- the attack


class Window:
    """All positions of one window at once: [positions * starts, t, d]. Under the causal mask later tokens do not
    matter, and the gradient does not move them."""

    def __init__(self, c, w, x, positions, starts):
        self.c, self.w64, self.x64 = c, w, x
        self.w = {k: v.float() for k, v in w.items()}
        self.x = x.float()
        self.at = torch.tensor(positions).repeat_interleave(starts)
        self.starts, self.count = starts, len(positions)
        z = logits(c, w, x.unsqueeze(0))[0, positions]
        self.predicted = z.argmax(-1).repeat_interleave(starts)
        order = z.argsort(-1, descending=True)
        # start s of a position: odd ones go for its (s // 2)-th other character
        target = torch.full((self.count, starts), -1)
        for s in range(1, starts, 2):
            target[:, s] = order[:, 1 + (s // 2) % 8]
        self.target = target.reshape(-1)

    def margins(self, delta, w, x):
        """max_b z_b - z_a, and the margin that the start ascends."""
        rows = torch.arange(len(delta))
        z = logits(self.c, w, x.unsqueeze(0) + delta)[rows, self.at]
        a = z[rows, self.predicted]
        others = z.clone()
        others[rows, self.predicted] = -torch.inf
        best = others.amax(-1) - a
        aim = torch.where(self.target >= 0, z[rows, self.target.clamp(min=0)] - a, best)
        return best, aim

    def changes(self, delta):
        with torch.no_grad():
            return self.margins(delta.double(), self.w64, self.x64)[0] > 0

    def ascend(self, delta, radius, steps):
        """Projected gradient ascent in the balls of these radii [count * starts]."""
        size = radius.view(-1, 1, 1)
        reached = torch.zeros(len(delta), dtype=torch.bool)
        kept = delta.clone()
        for step in range(steps):
            delta = delta.detach().requires_grad_(True)
            best, aim = self.margins(delta, self.w, self.x)
            (g,) = torch.autograd.grad(aim.sum(), delta)
            with torch.no_grad():
                new = (best > 0) & ~reached
                kept[new], reached = delta[new], reached | new
                rate = 2.5 / steps if step < steps * 2 // 3 else 0.8 / steps
                delta = delta + rate * size * g / g.flatten(1).norm(dim=1).clamp(min=1e-30).view(-1, 1, 1)
                delta = delta * (size / delta.flatten(1).norm(dim=1).view(-1, 1, 1)).clamp(max=1.0)
        kept[~reached] = delta.detach()[~reached]
        return kept

    def shortened(self, delta):
        """Along their rays, those that change the prediction; their lengths, infinity where they do not."""
        good = self.changes(delta)
        low, high = torch.zeros(len(delta)).double(), torch.ones(len(delta)).double()
        for _ in range(12):
            middle = (low + high) / 2
            hit = self.changes(delta.double() * middle.view(-1, 1, 1))
            high, low = torch.where(hit, middle, high), torch.where(hit, low, middle)
        length = delta.double().flatten(1).norm(dim=1) * high
        return torch.where(good, length, torch.full_like(length, torch.inf))


def nearest(window, options, generator):
    n, s = window.count, window.starts
    shape = (n * s, *window.x.shape)
    own = (torch.arange(window.x.shape[0]).unsqueeze(0) <= window.at.unsqueeze(1)).unsqueeze(2)

    def begin(radius):
        delta = torch.randn(shape, generator=generator) * own
        delta *= (radius / delta.flatten(1).norm(dim=1)).view(-1, 1, 1)
        delta[:: s] = 0  # the first start at the text, and one beside it for the runner-up
        if s > 1:
            delta[1 :: s] = 0
        return delta

    low = torch.zeros(n).double()
    high = torch.full((n,), torch.inf).double()
    radius = torch.full((n,), options.radius).double()
    for _ in range(options.radii):
        each = radius.repeat_interleave(s).float()
        found = window.shortened(window.ascend(begin(each), each, options.steps)).view(n, s).amin(1)
        hit = found < torch.inf
        high = torch.minimum(high, found)
        low = torch.where(hit, low, torch.maximum(low, radius))
        low = torch.minimum(low, high)
        radius = torch.where(high == torch.inf, radius * 2,
                             torch.where(low > 0, (low.clamp(min=1e-30) * high).sqrt(), high / 2))
    return high


def attacked(records, options):
    """The distance of the nearest change that is found, by the number of the position."""
    generator = torch.Generator().manual_seed(options.seed)
    c, w = load(records[0]["model"])
    ids = {code: i for i, code in enumerate(c["characters"])}
    text = pathlib.Path(records[0]["input"]["name"]).read_text()
    windows, found = {}, {}
    for r in records:
        windows.setdefault(r["input"]["offset"], []).append(r)
    for offset, rows in windows.items():
        positions = [r["n"] - 1 for r in rows]
        t = max(positions) + 1
        read = torch.tensor([ids[ord(z)] for z in text[offset : offset + t]])
        x = w["wte.weight"][read] + w["wpe.weight"][:t]
        z = logits(c, w, x.unsqueeze(0))[0]
        for r in rows:  # the same model: what certify said of the prediction and its margin
            top, details = z[r["n"] - 1], r["details"]
            assert chr(c["characters"][int(top.argmax())]) == details["predicted"], r
            assert abs(float(top.max() - top[ids[ord(details["runner_up"])]]) - details["margin"]) < 1e-6, r
        window = Window(c, w, x, positions, options.restarts + 1)
        for r, distance in zip(rows, nearest(window, options, generator).tolist()):
            found[r["sample"]] = distance
        print(f"{len(found)} of {len(records)} positions", file=sys.stderr, flush=True)
    return found


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("records")
    p.add_argument("--restarts", type=int, default=9, help="starts besides the first, at each radius")
    p.add_argument("--steps", type=int, default=30, help="of the ascent at one radius")
    p.add_argument("--radii", type=int, default=12, help="tried at each position")
    p.add_argument("--radius", type=float, default=0.5, help="the first")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--within", type=float, default=0.005)
    p.add_argument("--share", type=float, default=0.99)
    p.add_argument("--save", help="a file for what was found, a number for each record")
    p.add_argument("--saved", help="such a file, instead of the attack")
    options = p.parse_args()
    torch.set_num_threads(1)

    records = [json.loads(line) for line in open(options.records)]
    records = [r for r in records if r.get("command") == "certify"]
    if options.saved:
        found = {int(k): v for k, v in json.loads(pathlib.Path(options.saved).read_text()).items()}
    else:
        found = attacked(records, options)
    if options.save:
        pathlib.Path(options.save).write_text(json.dumps(found))

    ratios = sorted((r["upper"] or float("inf")) / found[r["sample"]] for r in records)
    as_near = sum(ratio <= 1 + options.within for ratio in ratios)
    print(f"{records[0]['model']}: as near as the peer within {100 * options.within:g} % at {as_near} of {len(ratios)} "
          f"positions ({100 * as_near / len(ratios):.1f} %); ours/peer: least {ratios[0]:.4f}, median "
          f"{ratios[len(ratios) // 2]:.4f}, most {ratios[-1]:.4f}; evaluations {sum(r['steps'] or 0 for r in records)}")
    sys.exit(as_near < options.share * len(ratios))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""PyTorch: what a user would write to measure the norm of attention's Jacobian.

Both directions run on graphs that are built once for each input. The VJP is the
ordinary backward pass, retained. The JVP is the backward pass of the backward pass:
g(u) = J'u is linear in u, so that its own VJP at v is Jv. Of the ways tried this was
the fastest (README.md): torch.func.jvp and forward_ad run the forward pass again in
each product, torch.func.linearize interprets its graph, torch.compile does not reuse
the forward pass between calls.
"""

import common

common.use_fast_allocator()

import torch  # noqa: E402

import selftest  # noqa: E402


class TorchPeer:
    def __init__(self, layer):
        self.heads, self.causal = layer.heads, layer.causal
        self.wqkv, self.wo = torch.from_numpy(layer.wqkv()), torch.from_numpy(layer.wo)
        self.bqkv = torch.from_numpy(layer.bqkv())

    def attention(self, x):
        n = x.shape[0]
        # [n, d] -> [n, 3Hk] -> three of [H, n, k]
        qkv = torch.addmm(self.bqkv, x, self.wqkv)
        q, k, v = qkv.view(n, 3, self.heads, -1).permute(1, 2, 0, 3).unbind(0)
        s = q @ k.transpose(-1, -2)
        if self.causal:
            s = s + self.hide
        return (torch.softmax(s, -1) @ v).transpose(0, 1).reshape(n, -1) @ self.wo

    def linearize(self, x):
        n = x.shape[0]
        if self.causal:
            self.hide = torch.full((n, n), -torch.inf).triu(1)
        self.x = torch.from_numpy(x).requires_grad_()
        self.y = self.attention(self.x)
        self.u = torch.zeros_like(self.y, requires_grad=True)
        (self.g,) = torch.autograd.grad(self.y, self.x, self.u, create_graph=True)

    def step(self, v):
        """v -> J'J v."""
        (jv,) = torch.autograd.grad(self.g, self.u, v, retain_graph=True)
        (w,) = torch.autograd.grad(self.y, self.x, jv, retain_graph=True)
        return w

    def product(self, v):
        return self.step(torch.from_numpy(v)).numpy()

    def timed_product(self, v):
        v = torch.from_numpy(v)
        return lambda: self.step(v)

    def settle(self, v, tolerance, most=20000):
        """||J v|| for unit v, once the residual |J'J v - s v|/s, s = v'J'J v, is below the tolerance."""
        v = torch.from_numpy(v)
        for iteration in range(1, most + 1):
            w = self.step(v)
            s = torch.sum(v * w)
            if (torch.linalg.vector_norm(w - s * v) <= tolerance * s).item():
                break
            v = w / torch.linalg.vector_norm(w)
        return s.item() ** 0.5, iteration

    def power_iteration(self, v, reference, tolerance, most=20000):
        """sqrt(||J'J v||) for unit v, from below, until it is near enough to the reference."""
        v = torch.from_numpy(v)
        for iteration in range(1, most + 1):
            w = self.step(v)
            norm = torch.linalg.vector_norm(w)
            value = norm.item() ** 0.5
            if abs(value - reference) <= tolerance * reference:
                break
            v = w / norm
        return value, iteration


def dense(peer, x):
    J = torch.autograd.functional.jacobian(peer.attention, torch.from_numpy(x))
    return J.reshape(x.size, x.size).numpy()


if __name__ == "__main__":
    options = common.parse("torch")
    torch.set_num_threads(options.threads)
    if options.selftest:
        selftest.selftest(TorchPeer, dense)
    else:
        common.run(options, TorchPeer, "torch", torch.__version__)

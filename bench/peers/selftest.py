"""A peer's value against the SVD of two dense Jacobians: its own and the written-out one."""

import json
import math
import sys

import numpy as np

from common import Layer, lanczos_norm, start_vector


def dense_norm(layer, x):
    """||J(x)||_2 from the written-out blocks B_ij of the Jacobian, f64: small layers only."""
    x = x.astype(np.float64)
    n, d = x.shape
    k = layer.wq.shape[1] // layer.heads
    J = np.zeros((n, d, n, d))  # output token and feature, input token and feature
    for h in range(layer.heads):
        c = slice(h * k, (h + 1) * k)
        wq, wk, wv, wo = (w.astype(np.float64) for w in
                          (layer.wq[:, c], layer.wk[:, c], layer.wv[:, c], layer.wo[c]))
        A, V, b = wq @ wk.T / math.sqrt(k), wv @ wo, layer.bq[c] @ wk.T / math.sqrt(k)
        s = (x @ A + b) @ x.T
        if layer.causal:
            s[np.triu_indices(n, 1)] = -np.inf
        P = np.exp(s - s.max(1, keepdims=True))
        P /= P.sum(1, keepdims=True)
        for i in range(n):
            m = P[i] @ x
            cov = (x - m).T @ (P[i][:, None] * (x - m))
            for j in range(n):
                B = P[i, j] * (np.eye(d) + np.outer(x[i] @ A + b, x[j] - m)) + (i == j) * A @ cov
                J[i, :, j, :] += (B @ V).T
    return np.linalg.norm(J.reshape(n * d, n * d), 2)


def selftest(make_peer, dense_by_autodiff):
    """The peer's value against two dense Jacobians, at n=16, d=32, H=4, with and without mask."""
    rng = np.random.default_rng(7)
    for causal in (False, True):
        w = [rng.normal(0, 0.3, (32, 32)).astype(np.float32) for _ in range(4)]
        layer = Layer(*w, rng.standard_normal(32, np.float32), 4, causal)
        x = rng.standard_normal((16, 32), np.float32)
        exact = dense_norm(layer, x)
        peer = make_peer(layer)
        peer.linearize(x)
        value, steps = peer.power_iteration(start_vector(x.shape, 0), exact, 1e-6)
        autodiff = float(np.linalg.norm(dense_by_autodiff(peer, x), 2))
        lanczos = lanczos_norm(peer.product, start_vector(x.shape, 0))
        for name, other in (("power", value), ("autodiff", autodiff), ("lanczos", lanczos)):
            if not abs(other - exact) <= 1e-5 * exact:
                sys.exit(f"selftest: {name} {other:.8g}, dense SVD {exact:.8g}, causal {causal}")
        print(json.dumps({"selftest": "ok", "mask": "causal" if causal else "none", "dense": exact,
                          "value": value, "iterations": steps}))

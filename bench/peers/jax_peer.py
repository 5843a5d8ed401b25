#!/usr/bin/env python3
"""JAX: what a user would write to measure the norm of attention's Jacobian.

jax.linearize gives v -> Jv with everything that depends on x already worked out,
jax.linear_transpose of it u -> J'u; the power iteration is one lax.while_loop. The
whole measurement is one jitted function; compiling it is not timed.
"""

import os

import common

common.use_fast_allocator()
options = common.parse("jax")
# XLA takes its number of threads from the processors it may run on
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402

import selftest  # noqa: E402


def attention(weights, x, heads, causal):
    wqkv, bqkv, wo = weights
    n, width = x.shape[0], wo.shape[0]  # width = Hk
    k = width // heads
    qkv = x @ wqkv + bqkv
    out = []
    # head by head: as fast as batched heads or faster at n = 128 and 1024, but for one loaded run
    for h in range(heads):
        query, key, value = (qkv[:, i * width + h * k : i * width + (h + 1) * k] for i in range(3))
        s = query @ key.T
        if causal:
            s = jnp.where(jnp.tril(jnp.ones((n, n), bool)), s, -jnp.inf)
        out.append(jax.nn.softmax(s, -1) @ value)
    return jnp.concatenate(out, 1) @ wo


def normal_product(jvp, v):
    """v -> J'J v."""
    return jax.linear_transpose(jvp, v)(jvp(v))[0]


class JaxPeer:
    def __init__(self, layer, most=20000):
        weights = tuple(jnp.asarray(w) for w in (layer.wqkv(), layer.bqkv(), layer.wo))

        def linearize(weights, x):
            return jax.linearize(lambda x: attention(weights, x, layer.heads, layer.causal), x)[1]

        def measure(weights, x, v, reference, tolerance):
            jvp = linearize(weights, x)

            def body(state):
                v, _, iteration = state
                w = normal_product(jvp, v)
                norm = jnp.linalg.norm(w)
                # sqrt(||J'J v||) for unit v, from below
                return w / norm, jnp.sqrt(norm), iteration + 1

            def far(state):
                _, value, iteration = state
                return (jnp.abs(value - reference) > tolerance * reference) & (iteration < most)

            _, value, iteration = lax.while_loop(far, body, (v, jnp.float32(-1), 0))
            return value, iteration

        self.attention = lambda x: attention(weights, x, layer.heads, layer.causal)
        self.jitted_linearize = lambda x, f=jax.jit(linearize): f(weights, x)
        self.jitted_measure = lambda *args, f=jax.jit(measure): f(weights, *args)
        self.jitted_product = jax.jit(normal_product)

    def linearize(self, x):
        """Keeps x: the measurement linearises inside its own jitted function."""
        self.x, self.jvp = jnp.asarray(x), None

    def step(self, v):
        if self.jvp is None:
            self.jvp = self.jitted_linearize(self.x)
        return self.jitted_product(self.jvp, v).block_until_ready()

    def product(self, v):
        return np.asarray(self.step(jnp.asarray(v)))

    def timed_product(self, v):
        v = jnp.asarray(v)
        return lambda: self.step(v)

    def power_iteration(self, v, reference, tolerance):
        value, iteration = self.jitted_measure(self.x, v, np.float32(reference), np.float32(tolerance))
        return float(value), int(iteration)


def dense(peer, x):
    return np.asarray(jax.jacobian(peer.attention)(jnp.asarray(x))).reshape(x.size, x.size)


if __name__ == "__main__":
    if options.selftest:
        selftest.selftest(JaxPeer, dense)
    else:
        common.run(options, JaxPeer, "jax", jax.__version__)

"""lipscope.jax.local_constant: the dense Jacobian's norm, and a clear word for what has none."""

import functools
import math

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

import lipscope  # noqa: E402
import lipscope.jax as lj  # noqa: E402


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def attention(weights, x, causal=False):
    q, k, v, o = (w.astype(x.dtype) if hasattr(w, "astype") else w for w in weights)
    scores = (x @ q) @ (x @ k).T / math.sqrt(q.shape[1])
    if causal:
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape, bool)), scores, -jnp.inf)
    return jax.nn.softmax(scores, axis=-1) @ (x @ v) @ o


def layer_norm(x):
    centred = x - x.mean(-1, keepdims=True)
    return centred / jnp.sqrt(jnp.mean(centred**2, -1, keepdims=True) + 1e-5)


weights = [normal(i, 8, 8) / 3 for i in range(4)]
FUNCTIONS = {
    "linear": (lambda x: x @ weights[0], (4, 8)),
    "wide": (lambda x: x @ np.hstack(weights), (4, 8)),
    "mlp": (lambda x: jax.nn.gelu(x @ weights[0]) @ weights[1], (4, 8)),
    "attention": (functools.partial(attention, weights), (6, 8)),
    "causal attention": (functools.partial(attention, weights, causal=True), (6, 8)),
    "jitted": (jax.jit(functools.partial(attention, weights)), (6, 8)),
    "block": (lambda x: x + attention(weights, layer_norm(x)), (6, 8)),
    "scan": (lambda x: jax.lax.scan(lambda h, t: ((jnp.tanh(h @ weights[0] + t),) * 2), x[0] * 0, x)[1], (5, 8)),
    "larger than what is decomposed": (functools.partial(attention, weights), (80, 8)),
}


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_constant_is_the_norm_of_the_dense_jacobian(name, dtype):
    f, shape = FUNCTIONS[name]
    with jax.enable_x64(True):
        x = jnp.asarray(normal(9, *shape), jnp.float64)
        exact = np.linalg.norm(np.asarray(jax.jacrev(f)(x)).reshape(-1, x.size), 2)
        if dtype == "f64":
            found = lj.local_constant(f, x)
    if dtype == "f32":
        found = lj.local_constant(f, jnp.asarray(normal(9, *shape)))
    assert found.lower == pytest.approx(exact, rel=1e-6)
    assert found.lower <= exact * (1 + 1e-9)
    assert found.details["evidence"] == "f64" and found.dtype == dtype
    assert found.direction.shape == shape and np.linalg.norm(found.direction) == pytest.approx(1)


def test_enclosure_encloses():
    x = jnp.asarray(normal(9, 80, 8))
    f = functools.partial(attention, weights)
    found = lj.local_constant(f, x, enclose=1.05)
    with jax.enable_x64(True):
        exact = np.linalg.norm(np.asarray(jax.jacrev(f)(jnp.asarray(x, jnp.float64))).reshape(-1, x.size), 2)
    assert found.status == "converged" and exact <= found.upper_whp <= 1.05 * found.lower


def test_function_that_narrows_inside_says_so():
    def f(x):
        return jnp.tanh(x).astype(jnp.float32).astype(x.dtype) * 2 + x

    found = lj.local_constant(f, jnp.asarray(normal(1, 3, 4)))
    assert found.details["evidence"] == "f32" and found.details["why_not_f64"] == "f narrows to f32 inside"
    assert found.upper_whp is None
    with pytest.raises(lipscope.InputError, match="enclose=1.1: needs f in f64"):
        lj.local_constant(f, jnp.asarray(normal(1, 3, 4)), enclose=1.1)


def test_batch_gives_each_input_its_own_record():
    x = jnp.asarray(normal(3, 3, 4, 8))
    found = lj.local_constant(lambda t: jnp.tanh(t @ weights[0]), x, batch=True)
    assert [r.sample for r in found] == [0, 1, 2] and len({r.lower for r in found}) == 3


x = jnp.ones((2, 3))
BAD = {
    "integers": (lambda t: t, jnp.ones(3, jnp.int32), "x: int32 has no derivative"),
    "complex": (lambda t: t, jnp.ones(3, jnp.complex64), "x: complex64"),
    "numpy array": (lambda t: t, np.ones(3), "x: expected a JAX array, got ndarray"),
    "nan": (lambda t: t, jnp.array([1.0, math.nan]), "x: 1 of its 2 numbers are not finite"),
    "empty": (lambda t: t, jnp.ones((0, 3)), r"x: shape \[0, 3\] holds no number"),
    "tuple": (lambda t: (t, t), x, "f: returns a tuple of 2 values and not one array"),
    "none": (lambda t: None, x, "f: returns a NoneType"),
    "argmax": (lambda t: t.argmax(-1), x, "which have no derivative"),
    "numpy": (lambda t: jnp.asarray(np.asarray(t) * 2), x, "f: JAX cannot differentiate it"),
    "infinite": (lambda t: t / 0, x, "f: 6 of the 6 numbers of its output are not finite"),
    "no function": (3, x, "f: expected a function, got int"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(name):
    f, at, message = BAD[name]
    with pytest.raises(lipscope.InputError, match=message):
        lj.local_constant(f, at)


def test_output_chooses_a_value():
    assert lj.local_constant(lambda t: (t, 3 * t), x, output=1).lower == pytest.approx(3, rel=1e-6)
    with pytest.raises(lipscope.InputError, match="output='c': f returns a dict of 1 values"):
        lj.local_constant(lambda t: {"a": t}, x, output="c")


def test_arrays_of_jax_are_those_of_numpy():
    """Weights, tokens and operators as JAX arrays, in f32, give the numbers of NumPy's."""
    q, k, v, o = (0.3 * normal(i, 8, 8) for i in range(4))
    x = normal(9, 5, 8)
    numpys = lipscope.measure(lipscope.Attention(q=q, k=k, v=v, o=o, heads=2), x)
    of_jax = lipscope.Attention(q=jnp.array(q), k=jnp.array(k), v=jnp.array(v), o=jnp.array(o), heads=2)
    assert lipscope.measure(of_jax, jnp.array(x)).lower == numpys.lower
    assert lipscope.spectral_norm(jnp.array(q)).lower == lipscope.spectral_norm(q).lower

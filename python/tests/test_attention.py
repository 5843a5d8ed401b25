"""Attention from arrays: the map, its Jacobian, and what commands say of it."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
import scipy.sparse.linalg

import lipscope


def reference(x, w, heads, causal, window=None, padding=(0, 0)):
    """Dot-product attention, written out."""
    q, k, v = (x @ w[name] + w.get(f"{name}_bias", 0) for name in "qkv")
    n, width = len(x), q.shape[1] // heads
    out = []
    for h in range(heads):
        at = slice(h * width, (h + 1) * width)
        scores = q[:, at] @ k[:, at].T / np.sqrt(width)
        if causal:
            scores = np.where(np.tri(n, dtype=bool), scores, -np.inf)
        if window is not None:
            i = np.arange(n)
            scores = np.where(abs(i[:, None] - i) < window, scores, -np.inf)
        scores[:, : padding[0]] = scores[:, n - padding[1] :] = -np.inf
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        out.append(p / p.sum(axis=1, keepdims=True) @ v[:, at])
    return np.concatenate(out, axis=1) @ w["o"] + w.get("o_bias", 0)


def weights(d=12, seed=0, dtype=np.float64, biases=True):
    rng = np.random.default_rng(seed)
    w = {name: (0.4 * rng.standard_normal((d, d))).astype(dtype) for name in "qkvo"}
    if biases:
        w |= {f"{name}_bias": rng.standard_normal(d).astype(dtype) for name in "qkvo"}
    return w


@pytest.mark.parametrize("mask", ["none", "causal"])
def test_the_map_is_attention(mask):
    w = weights()
    x = np.random.default_rng(1).standard_normal((7, 12))
    layer = lipscope.Attention(**w, heads=3, mask=mask)
    assert layer(x) == pytest.approx(reference(x, w, 3, mask == "causal"), abs=1e-12)


@pytest.mark.parametrize(
    ("mask", "window", "padding", "name"),
    [
        ("none", 2, (0, 0), "window 2"),
        ("causal", 3, (0, 0), "causal, window 3"),
        ("none", None, (1, 2), "padding 1 before and 2 after"),
        ("causal", 4, (0, 1), "causal, window 4, padding 0 before and 1 after"),
    ],
)
def test_windows_and_padding_hide_tokens(mask, window, padding, name, tmp_path):
    w = weights()
    x = np.random.default_rng(1).standard_normal((7, 12))
    layer = lipscope.Attention(**w, heads=3, mask=mask, window=window, padding=padding)
    assert layer(x) == pytest.approx(reference(x, w, 3, mask == "causal", window, padding), abs=1e-12)
    top = scipy.sparse.linalg.svds(layer.jacobian(x), k=1, return_singular_vectors=False)[0]
    found = lipscope.measure(layer, x)
    assert found.mask == name and found.lower == pytest.approx(top, rel=1e-7)
    for record in lipscope.bound(layer, length=7, radius=2.0):
        assert record.mask == name
    assert lipscope.search(layer, length=7, radius=2.0, restarts=0, max_evaluations=5).mask == name
    # the same words without a layer in memory
    given = dict(random="d=4,heads=2", length=7, mask=mask, window=window, padding=padding)
    assert lipscope.measure(**given).mask == name
    assert lipscope.Attention(**w, heads=3).replace(window=2, padding=(0, 1)).padding == (0, 1)


def test_windows_and_padding_that_make_no_sense_are_refused():
    w = weights()
    for given, words in [
        (dict(window=0), "window: expected 1 or more, got 0"),
        (dict(window="2"), "window: expected a whole number, got '2'"),
        (dict(padding=3), "padding: expected two whole numbers"),
        (dict(padding=(0, -1)), "padding: expected 0 or more"),
    ]:
        with pytest.raises((TypeError, ValueError), match=words):
            lipscope.Attention(**w, heads=3, **given)
        with pytest.raises((TypeError, ValueError), match=words):
            lipscope.measure(random="d=4,heads=2", length=3, **given)
    with pytest.raises(lipscope.InputError, match="padding: mask: token 0 of 3 sees no token"):
        lipscope.measure(random="d=4,heads=2", length=3, mask="causal", padding=(1, 0))


def test_the_jacobian_is_the_derivative_and_scipy_decomposes_it(layer):
    rng = np.random.default_rng(2)
    x, v = rng.standard_normal((2, 6, 12))
    j = layer.jacobian(x)
    assert j.shape == (72, 72)
    h = 1e-6
    assert j @ v.ravel() == pytest.approx(((layer(x + h * v) - layer(x - h * v)) / (2 * h)).ravel(), abs=1e-7)
    u = rng.standard_normal(72)
    assert u @ (j @ v.ravel()) == pytest.approx((j.H @ u) @ v.ravel(), rel=1e-12)
    top = scipy.sparse.linalg.svds(j, k=1, return_singular_vectors=False)[0]
    found = lipscope.measure(layer, x)
    assert found.lower == pytest.approx(top, rel=1e-7) and found.upper >= top * (1 - 1e-12)
    assert np.linalg.norm(j @ found.direction.ravel()) == pytest.approx(found.lower, rel=1e-9)
    assert lipscope.spectral_norm(j).lower == pytest.approx(top, rel=1e-7)


def test_a_layer_in_memory_equals_the_same_layer_in_a_file(tmp_path, program):
    import json

    from conftest import write_safetensors

    w = weights(dtype=np.float32)
    x = np.random.default_rng(3).standard_normal((40, 12))
    write_safetensors(tmp_path / "layer.safetensors", w)
    np.save(tmp_path / "x.npy", x)
    found = lipscope.measure(lipscope.Attention(**w, heads=3, mask="causal"), x, enclose=1.1)
    line = json.loads(program(
        "measure", "--weights", tmp_path / "layer.safetensors", "--num-heads", 3, "--mask", "causal",
        "--input", tmp_path / "x.npy", "--enclose", 1.1, "--json",
    ))  # fmt: skip
    for field in ("lower", "upper", "upper_whp", "residual", "steps", "lower_by", "upper_by", "n", "d"):
        assert getattr(found, field) == line[field], field
    assert found.model == "in memory" and len(found.model_sha256) == 64


def test_the_key_follows_the_content():
    w = weights()
    x = np.ones((3, 12))
    first = lipscope.measure(lipscope.Attention(**w, heads=3), x)
    w["v"] = w["v"].copy()
    same = lipscope.measure(lipscope.Attention(**w, heads=3), x)
    w["v"][0, 0] += 1e-9
    other = lipscope.measure(lipscope.Attention(**w, heads=3), x)
    assert first.model_sha256 == same.model_sha256 != other.model_sha256
    assert first.input["sha256"] == same.input["sha256"]


def test_every_number_comes_with_its_own_witness(layer):
    found = lipscope.measure(layer, length=6, samples=3)
    assert len({r.lower for r in found}) == 3
    for record in found:
        image = layer.jacobian(record.x) @ record.direction.ravel()
        assert np.linalg.norm(image) == pytest.approx(record.lower, rel=1e-9)


def test_arrays_are_read_at_every_call():
    w = weights()
    layer = lipscope.Attention(**w, heads=3)
    x = np.ones((3, 12))
    before = layer(x)
    w["o"] *= 2
    assert not np.allclose(layer(x), before)


def test_every_command_takes_a_layer(layer):
    assert lipscope.measure(layer, length=5).n == 5
    assert all(b.upper_by for b in lipscope.bound(layer, length=5, radius=1.0))
    found = lipscope.search(layer, length=4, radius=1.0, restarts=1, budget=5)
    assert found.x.shape == (4, 12) and found.lower <= found.upper
    assert len(lipscope.meanfield(layer.replace(mask="none"), length=4)) > 1
    w = weights()
    tied = lipscope.Attention(q=w["q"], v=w["v"], o=w["o"], heads=3, kind="l2")
    x = np.random.default_rng(4).standard_normal((5, 12))
    back = lipscope.invert(tied, x)
    assert back.x.shape == (5, 12) and back.status == "converged" and back.upper < 1e-8


@pytest.mark.parametrize("bias", [True, False])
def test_from_torch_is_the_module(bias):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module = torch.nn.MultiheadAttention(12, 3, bias=bias, batch_first=True).double().eval()
    if bias:
        torch.nn.init.normal_(module.in_proj_bias)
        torch.nn.init.normal_(module.out_proj.bias)
    x = torch.randn(6, 12, dtype=torch.float64)
    for mask in ("none", "causal"):
        forbidden = torch.ones(6, 6).triu(1).bool() if mask == "causal" else None
        with torch.no_grad():
            expected = module(x[None], x[None], x[None], attn_mask=forbidden, need_weights=False)[0][0]
        layer = lipscope.Attention.from_torch(module, mask=mask)
        assert layer(x) == pytest.approx(expected.numpy(), abs=1e-12)


def test_from_torch_refuses_by_name():
    torch = pytest.importorskip("torch")
    make = torch.nn.MultiheadAttention
    for module, word in (
        (make(12, 3, kdim=8), "kdim 8"),
        (make(12, 3, add_bias_kv=True), "add_bias_kv"),
        (make(12, 3, add_zero_attn=True), "add_zero_attn"),
        (make(12, 3, dropout=0.1), "dropout 0.1"),
    ):
        with pytest.raises(ValueError, match=word):
            lipscope.Attention.from_torch(module)


def test_check_passes_with_a_bound_or_fails_with_a_witness(layer):
    proved = layer.check(max_lipschitz=1e6, radius=1.0, length=4)
    assert proved.upper <= 1e6 and proved.upper_by
    with pytest.raises(lipscope.CheckFailed, match="at least") as caught:
        layer.check(max_lipschitz=1e-3, radius=1.0, length=4, budget=5)
    witness = caught.value.record
    assert witness.lower > 1e-3
    j = layer.jacobian(witness.x)
    assert np.linalg.norm(j @ witness.direction.ravel()) > 1e-3
    with pytest.raises(lipscope.CheckFailed, match="give radius"):
        layer.check(max_lipschitz=1.0)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"q": np.zeros((12, 12), dtype=int)}, ValueError, "q: expected float32 or float64, got int64"),
        ({"q": np.zeros(12)}, ValueError, r"q: expected 2 axes, got 1 in shape \[12\]"),
        ({"k": np.zeros((12, 9))}, ValueError, r"k: expected shape \[12, 12\], got \[12, 9\]"),
        ({"o": np.zeros((9, 12))}, ValueError, r"o: expected 12 rows, got shape \[9, 12\]"),
        ({"q_bias": np.zeros(5)}, ValueError, "q_bias: expected 12 numbers, got 5"),
        ({"heads": 5}, ValueError, "q: 12 columns do not divide into 5 heads"),
        ({"heads": 0}, ValueError, "heads: .* got 0"),
        ({"kind": "linear"}, ValueError, "kind: .* got 'linear'"),
        ({"mask": "auto"}, ValueError, "mask: .* got 'auto'"),
        ({"kind": "l2"}, ValueError, "k: tied"),
        ({"q": [[1.0]]}, TypeError, "q: expected an array .* got list"),
    ],
)
def test_refusals_at_the_hand_over(change, error, words):
    with pytest.raises(error, match=words):
        lipscope.Attention(**{**weights(biases=False), "heads": 3, **change})


def test_refusals_at_a_call(layer):
    with pytest.raises(ValueError, match="x: tokens have 5 features, the layer reads 12"):
        layer(np.zeros((3, 5)))
    with pytest.raises(ValueError, match=r"x: an empty array of shape \[0, 12\]"):
        layer(np.zeros((0, 12)))
    with pytest.raises(ValueError, match=r"x: entry \[1, 2\] is nan"):
        x = np.zeros((3, 12))
        x[1, 2] = np.nan
        layer(x)
    w = weights()
    w["v"][3, 4] = np.inf
    with pytest.raises(ValueError, match=r"v: entry \[3, 4\] is inf"):
        lipscope.Attention(**w, heads=3)(np.zeros((3, 12)))
    with pytest.raises(TypeError, match="mask: the layer has its own"):
        lipscope.measure(layer, np.zeros((3, 12)), mask="none")


def test_weights_are_not_copied_at_the_hand_over():
    program = textwrap.dedent("""
        import resource, numpy as np, lipscope
        w = {name: np.full((5000, 5000), 1e-3, dtype=np.float32) for name in "qkvo"}  # 400 MB
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        layer = lipscope.Attention(**w, heads=10)
        print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 100

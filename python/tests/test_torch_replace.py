"""lipscope.torch.replace_attention on torch.nn.TransformerEncoder."""

import copy
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import lipscope  # noqa: E402
import lipscope.torch as lt  # noqa: E402

D, HEADS, N = 8, 2, 6


def encoder(**options):
    torch.manual_seed(0)
    options = {"batch_first": True, **options}
    layer = torch.nn.TransformerEncoderLayer(D, HEADS, 16, 0.0, dtype=torch.float64, **options)
    made = torch.nn.TransformerEncoder(layer, 2, norm=torch.nn.LayerNorm(D, dtype=torch.float64))
    with torch.no_grad():  # torch begins with biases 0, which hide mistakes
        for p in made.parameters():
            p.add_(torch.randn_like(p) * 0.3)
    return made


def tokens(samples=3):
    return torch.randn(samples, N, D, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def by_cpp(old, x, mask="none"):
    """What C++ makes of the weights of a MultiheadAttention, as tied L2 attention."""
    w, b = old.in_proj_weight.detach(), old.in_proj_bias.detach()
    layer = lipscope.Attention(
        kind="l2", heads=HEADS, mask=mask, q=w[:D].T, v=w[2 * D :].T, o=old.out_proj.weight.detach().T,
        q_bias=b[:D], v_bias=b[2 * D :], o_bias=old.out_proj.bias.detach(),
    )  # fmt: skip
    return np.stack([layer(one) for one in x.detach()])


def seen(module, run):
    """The inputs and outputs of a module in a run."""
    got = []
    handle = module.register_forward_hook(lambda m, args, out: got.append((args[0].detach(), out[0].detach())))
    run()
    handle.remove()
    return got[0]


@pytest.mark.parametrize("causal", [False, True])
def test_layers_are_l2_attention_on_the_weights_of_the_model(causal):
    model = encoder()
    before = copy.deepcopy(model)
    found = lt.replace_attention(model, "l2", weights="kept")
    assert list(found.layers) == ["layers.0.self_attn", "layers.1.self_attn"]
    mask = torch.ones(N, N, dtype=torch.bool).triu(1) if causal else None
    for old, new in zip(before.layers, model.layers):
        assert isinstance(new.self_attn, lt.L2SelfAttention)
        x, y = seen(new.self_attn, lambda: model(tokens(), mask=mask))
        expected = by_cpp(old.self_attn, x, "causal" if causal else "none")
        assert np.abs(y.numpy() - expected).max() < 1e-10


@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize("norm_first", [False, True])
def test_evaluation_without_gradients_runs_the_new_layers_too(norm_first, padding):
    # torch then has a path of its own, which reads weights and does not call modules
    model = encoder(norm_first=norm_first)
    x = tokens()
    mask = torch.arange(N)[None] >= torch.tensor([N, 4, 2])[:, None] if padding else None
    dot = model.eval()(x, src_key_padding_mask=mask)
    lt.replace_attention(model)
    assert not any(layer.self_attn.training for layer in model.layers)
    expected = model.train()(x, src_key_padding_mask=mask)
    with torch.no_grad():
        y = model.eval()(x, src_key_padding_mask=mask)
    kept = slice(None) if mask is None else ~mask
    assert torch.allclose(y[kept], expected[kept], atol=1e-12)
    assert not torch.allclose(y[kept], dot[kept], atol=1e-2)


def test_padding_and_the_order_of_axes_change_nothing():
    model = encoder(batch_first=False)
    lt.replace_attention(model)
    x = tokens(1)
    whole = model(x.transpose(0, 1))[:, 0]
    hidden = torch.cat([torch.zeros(1, N, dtype=torch.bool), torch.ones(1, 2, dtype=torch.bool)], 1)
    padded = model(torch.cat([x, 9 * torch.ones(1, 2, D).double()], 1).transpose(0, 1), src_key_padding_mask=hidden)
    assert torch.allclose(padded[:N, 0], whole, atol=1e-12)


def test_gradients_reach_every_weight_and_the_state_comes_back():
    model = encoder()
    lt.replace_attention(model)
    model(tokens()).square().sum().backward()
    for name, p in model.named_parameters():
        assert p.grad is not None and p.grad.isfinite().all() and p.grad.abs().max() > 1e-8, name
    other = encoder()
    torch.manual_seed(5)
    lt.replace_attention(other)
    assert not torch.equal(other(tokens()), model(tokens()))
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(tokens()), model(tokens()))


@pytest.mark.parametrize("kind", ["cosine", "sigmoid"])
def test_other_kinds_keep_their_keys(kind):
    model = encoder()
    old = copy.deepcopy(model).layers[0].self_attn
    lt.replace_attention(model, kind, weights="kept")
    x, y = seen(model.layers[0].self_attn, lambda: model(tokens()))
    q, k, v = old.in_proj_weight.detach().chunk(3)
    o, bias = old.out_proj.weight.detach(), old.out_proj.bias.detach()
    layer = lipscope.Attention(kind=kind, heads=HEADS, q=q.T, k=k.T, v=v.T, o=o.T, o_bias=bias)
    assert np.abs(y.numpy() - np.stack([layer(one) for one in x])).max() < 1e-10


def test_it_says_what_was_done_and_what_is_lost():
    text = str(lt.replace_attention(encoder(), weights="kept"))
    assert "2 attention layers are l2 now: layers.0.self_attn, layers.1.self_attn" in text
    assert "Pretrained weights do not carry over" in text and "that were there" in text
    assert "new random weights" in str(lt.replace_attention(encoder()))


def test_what_cannot_be_replaced_is_named_and_nothing_is_changed():
    def refused(model, words, **options):
        before = [type(m) for m in model.modules()]
        with pytest.raises(lipscope.InputError, match=words):
            lt.replace_attention(model, **options)
        assert [type(m) for m in model.modules()] == before

    refused(torch.nn.Linear(3, 3), "Linear has no attention")
    refused(torch.nn.MultiheadAttention(8, 2), "model: MultiheadAttention is not known here")
    refused(torch.nn.Transformer(8, 2, 1, 1, 16), "decoder.layers.0.self_attn: MultiheadAttention is not known")
    refused(encoder(), "kind: 'dot'; expected l2", kind="dot")
    refused(encoder(), "weights: 'old'; expected kept or new", weights="old")
    odd = encoder()
    odd.layers[1].self_attn = torch.nn.MultiheadAttention(D, HEADS, add_zero_attn=True)
    refused(odd, "layers.1.self_attn: add_zero_attn adds a token")
    twice = encoder()
    lt.replace_attention(twice)
    refused(twice, "has no attention")
    with pytest.raises(lipscope.InputError, match="model: expected a torch.nn.Module, got str"):
        lt.replace_attention("model")


# ---- rotary positions


def rotary_case(n=5, k=4, scale=1.0, dtype=torch.float64):
    from lipscope.torch.rotary import RotaryL2SelfAttention

    torch.manual_seed(2)
    module = RotaryL2SelfAttention(2 * k, 2, bias=True, dtype=dtype)
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(torch.randn_like(p) * 0.6)
    x = scale * torch.randn(1, n, 2 * k, dtype=dtype)
    return module, x


def angles(places, k=4):
    turn = torch.as_tensor(places, dtype=torch.float64)[:, None] * torch.tensor([1.0, 0.3])
    turn = torch.cat([turn, turn], -1)[None]
    return turn.cos(), turn.sin()


def test_rotary_attention_is_its_formula_and_depends_on_differences_of_positions():
    module, x = rotary_case()
    n, k = x.shape[1], module.head_dim
    y = module(x, positions=angles(range(n)), is_causal=True)[0]
    expected = module.out_proj_bias.detach().repeat(n, 1)

    def rotation(t):
        r = torch.zeros(k, k, dtype=torch.float64)
        for f, a in enumerate((t * 1.0, t * 0.3)):
            r[f, f] = r[f + 2, f + 2] = math.cos(a)
            r[f, f + 2], r[f + 2, f] = math.sin(a), -math.sin(a)
        return r

    for h in range(2):
        rows = slice(h * k, (h + 1) * k)
        wq, wv, wo = module.q_proj_weight[rows].T, module.v_proj_weight[rows].T, module.out_proj_weight[:, rows].T
        q = x[0] @ wq
        for i in range(n):
            scores = torch.stack([-(q[i] @ rotation(i) - q[j] @ rotation(j)).square().sum() for j in range(i + 1)])
            p = (scores / math.sqrt(k)).softmax(0)
            # x_j A with A = W_Q R_{j−i} W_Qᵀ/√k
            values = torch.stack([q[j] @ rotation(j - i) @ wq.T / math.sqrt(k) for j in range(i + 1)])
            expected[i] += p @ values @ wv @ wo
    assert torch.allclose(y[0], expected, atol=1e-12)
    assert torch.allclose(y, module(x, positions=angles(range(7, 7 + n)), is_causal=True)[0], atol=1e-12)
    assert not torch.allclose(y, module(x, positions=angles(range(0, 2 * n, 2)), is_causal=True)[0], atol=1e-3)


def test_rotary_attention_has_the_constant_of_l2_attention_and_values_that_are_not_turned_have_none():
    module, _ = rotary_case()
    n, k = 5, module.head_dim
    positions = angles(range(n))
    assert lt.proved_bound(module, n).upper == lt.proved_bound(plain_of(module), n).upper
    for norm in ("2", "token"):
        upper = lt.proved_bound(module, n, norm).upper
        for scale in (0.3, 1.0, 3.0, 30.0):
            x = scale * torch.randn(1, n, 2 * k, dtype=torch.float64)
            assert lt.local_constant(lambda t: module(t, positions=positions)[0], x, norm=norm).lower <= upper
    with pytest.raises(lipscope.InputError, match="RotaryL2SelfAttention has no bound in the inf-norm"):
        lt.proved_bound(module, n, "inf")
    with pytest.raises(lipscope.InputError, match="lipscope.Attention has no positions"):
        module.to_attention()

    # tokens that are turned onto almost the same place, far out: weights near uniform, values far apart
    one = lt.RotaryL2SelfAttention(k, 1, dtype=torch.float64)
    with torch.no_grad():
        for p in one.parameters():
            p.copy_(torch.eye(k))
    cos, sin = angles(range(n))
    upper = lt.proved_bound(one, n).upper

    def values_not_turned(x):
        y = turned(x, cos, sin)
        weights = (-(y[:, :, None] - y[:, None]).square().sum(-1) / math.sqrt(k)).softmax(-1)
        return weights @ x / math.sqrt(k)

    for far, exceeds in ((1.0, False), (1e3, True), (1e6, True)):
        place = far * torch.ones(1, 1, k, dtype=torch.float64)
        y = place + torch.randn(1, n, k, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
        x = turned(y, cos, -sin)
        assert torch.allclose(turned(x, cos, sin), y)
        assert lt.local_constant(lambda t: one(t, positions=(cos, sin))[0], x).lower <= upper
        assert (lt.local_constant(values_not_turned, x).lower > 100 * upper) == exceeds


def plain_of(module):
    plain = lt.L2SelfAttention(module.embed_dim, module.num_heads, bias=True, dtype=torch.float64)
    plain.load_state_dict(module.state_dict())
    return plain


def turned(z, cos, sin):
    half = z.shape[-1] // 2
    return z * cos + torch.cat([-z[..., half:], z[..., :half]], -1) * sin

"""Lipschitz attention for PyTorch: the maps of the C++ core, their gradients, masks, memory, and clear refusals."""

import copy
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional

import lipscope  # noqa: E402
import lipscope.torch as lt  # noqa: E402
from lipscope.torch.plain_kernels import plain_kernels  # noqa: E402

KINDS = [lt.L2SelfAttention, lt.ContractiveL2SelfAttention, lt.CosineSelfAttention, lt.SigmoidSelfAttention]
FORMS = ["none", "causal", "bool", "float", "padding", "padding and causal"]
TODAY = hasattr(torch, "compile")


def module_of(kind, dtype=torch.float64, d=12, heads=3, seed=0, scale=0.4, **options):
    torch.manual_seed(seed)
    module = kind(d, heads, dtype=dtype, **options)
    with torch.no_grad():
        for p in module.parameters():
            p.normal_(std=scale)
    return module.eval()


def masks_of(form, n, samples=2):
    """The arguments of forward, and which tokens [samples, n, n] are hidden from which by them."""
    hidden = torch.zeros(samples, n, n, dtype=torch.bool)
    later = torch.ones(n, n, dtype=torch.bool).triu(1)
    some = torch.rand(n, n, generator=torch.Generator().manual_seed(1)) < 0.4
    some.fill_diagonal_(False)
    padded = torch.zeros(samples, n, dtype=torch.bool)
    padded[0, n - 2 :] = True
    padded[1, 0] = True
    forms = {
        "none": ({}, hidden),
        "causal": ({"is_causal": True}, hidden | later),
        "bool": ({"attn_mask": some}, hidden | some),
        "float": ({"attn_mask": torch.zeros(n, n).masked_fill(some, -math.inf)}, hidden | some),
        "padding": ({"key_padding_mask": padded}, hidden | padded[:, None, :] | padded[:, :, None]),
        "padding and causal": (
            {"key_padding_mask": padded, "is_causal": True},
            hidden | padded[:, None, :] | padded[:, :, None] | later,
        ),
    }
    return forms[form]


def dense(module, x, hidden):
    """The output by its definition, one head and one sequence at a time, with all n × n × k differences."""
    d, k = module.embed_dim, module.head_dim
    outputs = []
    for tokens, hide in zip(x, hidden):
        n = len(tokens)
        rows = ~hide.all(-1)
        y = torch.zeros(n, d, dtype=x.dtype)
        for h in range(module.num_heads):
            at = slice(h * k, (h + 1) * k)
            w = {name[0]: p[at].T for name, p in module.named_parameters() if name[0] in "qkv"}
            q = tokens @ w["q"]
            wv = w["v"]
            if module.kind == "l2":
                scores = -(q[:, None] - q[None]).square().sum(-1) / math.sqrt(k)
                value = tokens @ (w["q"] @ w["q"].T / math.sqrt(k)) @ wv
            else:
                key, value = tokens @ w["k"], tokens @ wv
                if module.kind == "cosine":
                    q, key, value = (z / (z.square().sum(-1, keepdim=True) + module.epsilon).sqrt() for z in (q, key, value))
                    scores, value = module.tau * q @ key.T, module.nu * value
                else:
                    scores = q @ key.T / math.sqrt(k) - math.log(int(rows.sum()))
            if module.kind == "sigmoid":
                weights = torch.sigmoid(scores).masked_fill(hide, 0.0)
            else:
                weights = scores.masked_fill(hide, -math.inf)[rows].softmax(-1)
                weights = torch.zeros(n, n, dtype=x.dtype).index_put((rows.nonzero()[:, 0],), weights)
            y = y + weights @ value @ module.out_proj_weight[:, at].T
        outputs.append(y)
    y = torch.stack(outputs)
    if isinstance(module, lt.ContractiveL2SelfAttention):
        y = y * module.factor(x.shape[1])
    return y


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype, within", [(torch.float32, 1e-5), (torch.float64, 1e-10)])
def test_outputs_and_gradients_are_those_of_the_definition(kind, form, dtype, within):
    module = module_of(kind, dtype)
    masks, hidden = masks_of(form, 6)
    x = torch.randn(2, 6, 12, dtype=dtype, requires_grad=True)
    oracle = copy.deepcopy(module).double()
    exact = x.detach().double().requires_grad_()
    expected = dense(oracle, exact, hidden)
    direction = torch.randn(2, 6, 12, dtype=torch.float64)
    wanted = torch.autograd.grad((expected * direction).sum(), [exact, *oracle.parameters()])
    for need_weights in (False, True):
        y, weights = module(x, need_weights=need_weights, **masks)
        assert (weights is not None) == need_weights
        found = torch.autograd.grad((y * direction.to(dtype)).sum(), [x, *module.parameters()])
        for one, other in zip((y, *found), (expected, *wanted)):
            assert float((one.double() - other).abs().max()) <= within * max(1.0, float(other.abs().max()))


@pytest.mark.parametrize("mask", ["none", "causal"])
@pytest.mark.parametrize("kind", KINDS)
def test_outputs_and_jacobians_are_those_of_the_core(kind, mask):
    module = module_of(kind)
    layer = module.to_attention(mask=mask)
    x = torch.randn(5, 12, dtype=torch.float64)
    factor = float(module.factor(5)) if hasattr(module, "factor") else 1.0

    def run(at):
        return module(at, is_causal=mask == "causal")[0]

    np.testing.assert_allclose(run(x).detach().numpy(), factor * layer(x.numpy()), rtol=1e-10, atol=1e-12)
    jacobian = torch.autograd.functional.jacobian(run, x).reshape(60, 60)
    v = torch.randn(60, dtype=torch.float64)
    np.testing.assert_allclose((jacobian @ v).numpy(), factor * (layer.jacobian(x.numpy()) @ v.numpy()), rtol=1e-9)


def test_contractive_attention_is_divided_by_the_bound_of_the_core():
    module = module_of(lt.ContractiveL2SelfAttention)
    known = lipscope.bound(module.to_attention(), length=5, norm="inf", progress=False)
    proved = next(r for r in known if r.upper_by == "kim21_inf")
    assert 0.0 <= 1.0 - float(module.factor(5).detach()) * proved.upper < 1e-8


@pytest.mark.parametrize("kind", KINDS)
def test_layers_go_to_the_core_and_come_back(kind):
    module = module_of(kind, bias=True)
    back = kind.from_attention(module.to_attention())
    x = torch.randn(2, 5, 12, dtype=torch.float64)
    assert torch.equal(back(x)[0], module(x)[0])
    assert list(back.state_dict()) == list(module.state_dict())


def test_biases_of_queries_cancel_and_those_of_values_shift():
    rng = np.random.default_rng(0)
    arrays = {name: rng.standard_normal((8, 8)) for name in "qvo"}
    biases = {f"{name}_bias": rng.standard_normal(8) for name in "qvo"}
    layer = lipscope.Attention(**arrays, **biases, heads=2, kind="l2")
    x = rng.standard_normal((5, 8))
    module = lt.L2SelfAttention.from_attention(layer)
    np.testing.assert_allclose(module(torch.from_numpy(x))[0].detach().numpy(), layer(x), rtol=1e-11)
    without = lipscope.Attention(**{**arrays, "o": None}, heads=2, kind="l2")
    module = lt.L2SelfAttention.from_attention(without)
    np.testing.assert_allclose(module(torch.from_numpy(x))[0].detach().numpy(), without(x), rtol=1e-11)


@pytest.mark.parametrize("form", ["none", "bool", "padding and causal"])
@pytest.mark.parametrize("kind", KINDS)
def test_first_and_second_derivatives(kind, form):
    module = module_of(kind, d=2, heads=2 if form == "bool" else 1)
    masks, _ = masks_of(form, 3, samples=2)
    names = [name for name, _ in module.named_parameters()]

    def run(x, *weights):
        state = dict(zip(names, weights))
        saved = {name: getattr(module, name) for name in names}
        for name in names:
            delattr(module, name)
            setattr(module, name, state[name])
        try:
            return module(x, need_weights=False, **masks)[0]
        finally:
            for name in names:
                delattr(module, name)
                setattr(module, name, saved[name])

    x = torch.randn(2, 3, 2, dtype=torch.float64, requires_grad=True)
    weights = [p.detach().clone().requires_grad_() for p in module.parameters()]
    with plain_kernels():  # fused kernels have no second derivative
        assert torch.autograd.gradcheck(run, (x, *weights))
        assert torch.autograd.gradgradcheck(run, (x, *weights), fast_mode=True)


def test_the_arguments_are_those_of_multihead_attention():
    module = module_of(lt.L2SelfAttention, bias=True)
    x = torch.randn(2, 6, 12, dtype=torch.float64)
    y, weights = module(x)
    assert y.shape == (2, 6, 12) and weights.shape == (2, 6, 6)
    assert torch.allclose(weights.sum(-1), torch.ones(2, 6, dtype=torch.float64))
    assert module(x, x, x, need_weights=False)[1] is None
    assert module(x, average_attn_weights=False)[1].shape == (2, 3, 6, 6)
    assert torch.allclose(module(x[0])[0], y[0]) and module(x[0])[1].shape == (6, 6)
    other = copy.deepcopy(module)
    other.batch_first = False
    assert torch.allclose(other(x.transpose(0, 1))[0].transpose(0, 1), y)
    mask = masks_of("bool", 6)[0]["attn_mask"]
    each = mask.expand(6, 6, 6)
    assert torch.allclose(module(x, attn_mask=each)[0], module(x, attn_mask=mask)[0])
    assert torch.allclose(module(x, attn_mask=mask[None, None])[0], module(x, attn_mask=mask)[0])


def test_what_is_hidden_is_not_felt():
    for kind in KINDS:
        module = module_of(kind, torch.float32)
        x = torch.randn(1, 8, 12)
        changed = x.clone()
        changed[:, 5:] += 1.0
        for need_weights in (False, True):
            run = {"need_weights": need_weights, "is_causal": True}
            assert torch.equal(module(x, **run)[0][:, :5], module(changed, **run)[0][:, :5])
        padded = torch.arange(8)[None] >= 5
        y = module(x, key_padding_mask=padded, need_weights=False)[0]
        assert torch.equal(y[:, :5], module(changed, key_padding_mask=padded, need_weights=False)[0][:, :5])
        assert not y[:, 5:].any()
        if kind is not lt.ContractiveL2SelfAttention:  # which is divided by what the length gives
            assert torch.allclose(y[:, :5], module(x[:, :5])[0], atol=1e-6)


def test_a_batch_of_nothing_but_padding_is_no_nan():
    for kind in KINDS:
        module = module_of(kind)
        x = torch.randn(1, 3, 12, dtype=torch.float64, requires_grad=True)
        y = module(x, key_padding_mask=torch.ones(1, 3, dtype=torch.bool), need_weights=False)[0]
        assert not y.any() and not torch.autograd.grad(y.sum(), x)[0].isnan().any()


def test_distances_far_from_the_origin_keep_their_digits():
    module = module_of(lt.L2SelfAttention, torch.float32)
    x = torch.randn(1, 6, 12)
    wide = copy.deepcopy(module).double()
    far = x + 100.0
    for need_weights in (False, True):
        weights = module(far)[1].double()
        assert float((weights - wide(far.double())[1]).abs().max()) < 2e-4  # of scores that are 1e5 apart from 0


def test_dropout_is_on_in_training_alone():
    module = module_of(lt.L2SelfAttention, dropout=0.5)
    x = torch.randn(1, 6, 12, dtype=torch.float64)
    assert torch.equal(module(x)[0], module(x)[0])
    module.train()
    assert not torch.equal(module(x)[0], module(x)[0])


def test_torch_encoders_take_it():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(12, 3, 24, batch_first=True)
    layer.self_attn = lt.L2SelfAttention(12, 3, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2).eval()
    x, padded = torch.randn(2, 6, 12), torch.arange(6)[None].expand(2, 6) >= 4
    with torch.no_grad():
        short = encoder(x[:, :4])
        assert torch.allclose(encoder(x, src_key_padding_mask=padded)[:, :4], short, atol=1e-5)
        first = encoder.layers[0]
        by_hand = first.norm1(x + first.self_attn(x)[0])
        by_hand = first.norm2(by_hand + first.linear2(F.relu(first.linear1(by_hand))))
        assert torch.allclose(first(x), by_hand, atol=1e-6)


def peak_of(run):
    """The most memory that tensors of a call hold at a time, in bytes."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Peak(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.alive, self.now, self.most = {}, 0, 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            import weakref

            out = func(*args, **(kwargs or {}))
            for tensor in out if isinstance(out, (tuple, list)) else [out]:
                if not isinstance(tensor, torch.Tensor):
                    continue
                storage = tensor.untyped_storage()
                if storage.data_ptr() in self.alive or storage.nbytes() == 0:
                    continue
                key, size = storage.data_ptr(), storage.nbytes()
                self.alive[key] = size
                self.now += size
                self.most = max(self.most, self.now)
                weakref.finalize(storage, self.free, key)
            return out

        def free(self, key):
            self.now -= self.alive.pop(key, 0)

    with Peak() as peak:
        run()
    return peak.most


@pytest.mark.skipif(not TODAY, reason="needs a torch that tells where a storage ends")
@pytest.mark.parametrize("weights", [False, True])
def test_memory_is_no_more_than_that_of_the_plain_kernel(weights):
    x = torch.randn(1, 512, 32)
    ours = module_of(lt.L2SelfAttention, torch.float32, d=32, heads=4)
    plain = nn.MultiheadAttention(32, 4, batch_first=True).eval()

    def step(module):
        y = module(x, x, x, need_weights=weights)[0]
        y.sum().backward()

    with plain_kernels():
        assert peak_of(lambda: step(ours)) <= 1.05 * peak_of(lambda: step(plain))


@pytest.mark.skipif(not TODAY, reason="needs fused kernels")
def test_fused_kernels_are_selected_and_need_no_square():
    n = 1024
    module = module_of(lt.L2SelfAttention, torch.float32, d=16, heads=2)
    x = torch.randn(1, n, 16)
    square = 4 * 2 * n * n  # of the scores alone, in bytes
    for masks in ({}, {"is_causal": True}, {"is_causal": True, "key_padding_mask": torch.arange(n)[None] > 900}):
        y = module(x, need_weights=False, **masks)[0]
        assert peak_of(lambda: module(x, need_weights=False, **masks)[0].sum().backward()) < square / 2
        with plain_kernels():
            assert torch.allclose(module(x, need_weights=False, **masks)[0], y, atol=1e-5)


@pytest.mark.skipif(not TODAY, reason="needs torch.compile")
@pytest.mark.parametrize("kind", KINDS)
def test_torch_compile(kind):
    module = module_of(kind, torch.float32)
    masks = {**masks_of("padding and causal", 6)[0], **masks_of("bool", 6)[0]}

    def attend(x):
        return module(x, need_weights=False, **masks)[0]

    x = torch.randn(2, 6, 12, requires_grad=True)
    y, expected = torch.compile(attend, fullgraph=True, backend="aot_eager")(x), attend(x)
    assert torch.allclose(y, expected, atol=1e-6)
    one, other = (torch.autograd.grad(z.square().sum(), [x, *module.parameters()]) for z in (y, expected))
    assert all(torch.allclose(a, b, atol=1e-4) for a, b in zip(one, other))


@pytest.mark.skipif(not TODAY, reason="Debian's torch has no such kernels on the CPU")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(dtype):
    module = module_of(lt.L2SelfAttention, torch.float32)
    x = torch.randn(2, 6, 12).to(dtype)
    half = copy.deepcopy(module).to(dtype)
    exact = copy.deepcopy(half).double()(x.double())[0]
    for need_weights in (False, True):
        y = half(x, need_weights=need_weights)[0]
        assert y.dtype == dtype
        assert float((y.double() - exact).abs().max()) < 20 * torch.finfo(dtype).eps * float(exact.abs().max())


@pytest.mark.parametrize(
    "wrong, message",
    [
        (lambda m, x: m(x, x + 1), "key, value: L2SelfAttention is attention of a sequence to itself"),
        (lambda m, x: m(x[..., :5]), "query: shape"),
        (lambda m, x: m(x[0, 0]), "query: shape"),
        (lambda m, x: m([1.0]), "query: expected a tensor"),
        (lambda m, x: m(x.long()), "query: int64"),
        (lambda m, x: m(x, attn_mask=torch.zeros(5, 5)), "attn_mask: shape"),
        (lambda m, x: m(x, attn_mask=torch.zeros(6, 6, dtype=torch.long)), "attn_mask: int64"),
        (lambda m, x: m(x, attn_mask=torch.eye(6, dtype=torch.bool)), "attn_mask: token 0 prefers token 1 to itself"),
        (lambda m, x: m(x, attn_mask=torch.ones(6, 6).triu(1)), "attn_mask: token 0 prefers token 1 to itself"),
        (lambda m, x: m(x, key_padding_mask=torch.zeros(2, 5, dtype=torch.bool)), "key_padding_mask: shape"),
        (lambda m, x: m(x, key_padding_mask=torch.zeros(2, 6, dtype=torch.long)), "key_padding_mask: int64"),
        (lambda m, x: m(x, key_padding_mask=torch.full((2, 6), -1.0)), "key_padding_mask: has numbers other than 0"),
        (lambda m, x: m(x[:, :0]), "holds no token"),
        (lambda m, x: lt.L2SelfAttention(10, 3), "embed_dim: 10 does not divide into 3 heads"),
        (lambda m, x: lt.L2SelfAttention(0, 3), "embed_dim: 0"),
        (lambda m, x: lt.L2SelfAttention(12, 3, dropout=1.0), "dropout: 1.0"),
        (lambda m, x: lt.CosineSelfAttention(12, 3, epsilon=0.0), "epsilon: 0.0"),
        (lambda m, x: lt.ContractiveL2SelfAttention(12, 3, length=0), "length: 0"),
        (lambda m, x: lt.ContractiveL2SelfAttention(12, 3, length=4, dtype=torch.float64)(x), "contractive up to length 4"),
        (lambda m, x: lt.CosineSelfAttention.from_attention(m.to_attention()), "layer: kind 'l2'"),
        (lambda m, x: lt.l2_attention(x, x[:1]), "v: shape"),
        (lambda m, x: lt.l2_attention(x, x.float()), "v: f32"),
        (lambda m, x: lt.SigmoidSelfAttention(12, 3, dtype=torch.float64)(x, attn_mask=torch.ones(6, 6)), "attn_mask: has numbers above 0"),
    ],
)  # fmt: skip
def test_refusals_name_the_argument(wrong, message):
    module = module_of(lt.L2SelfAttention)
    with pytest.raises(lipscope.InputError, match=message):
        wrong(module, torch.randn(2, 6, 12, dtype=torch.float64))


# ---- what public implementations get wrong


class Public(nn.Module):
    """L2 attention as it is often written: each of the two conditions, and the scale, can be left out."""

    def __init__(self, module, tied=True, factor=True, scaled=True):
        super().__init__()
        self.module, self.tied, self.factor, self.scaled = module, tied, factor, scaled
        torch.manual_seed(3)
        self.key = module.q_proj_weight if tied else nn.Parameter(-module.q_proj_weight.detach())

    def forward(self, x):
        m, k = self.module, self.module.head_dim
        y = 0
        for h in range(m.num_heads):
            at = slice(h * k, (h + 1) * k)
            wq, wv = m.q_proj_weight[at].T, m.v_proj_weight[at].T
            scores = -(x @ wq)[:, None].sub((x @ self.key[at].T)[None]).square().sum(-1)
            weights = (scores / math.sqrt(k) if self.scaled else scores).softmax(-1)
            a = wq @ wq.T if self.factor else torch.eye(m.embed_dim, dtype=x.dtype)
            a = a / math.sqrt(k) if self.factor and self.scaled else a
            y = y + weights @ x @ a @ wv @ m.out_proj_weight[:, at].T
        return y


def test_the_right_form_is_ours():
    module = module_of(lt.L2SelfAttention)
    x = torch.randn(5, 12, dtype=torch.float64)
    assert torch.allclose(Public(module)(x), module(x)[0], atol=1e-12)


def counterexample(form):
    """A module, and an input at which the wrong form of it reacts more strongly than the bound on the right one."""
    module = lt.L2SelfAttention(2, 1, dtype=torch.float64)
    with torch.no_grad():
        module.v_proj_weight.copy_(torch.eye(2))
        module.out_proj_weight.copy_(torch.eye(2))
        module.q_proj_weight.copy_(torch.eye(2))
    if form == "untied":  # theory: d = 1, w_q = 1, w_k = −1; x = (2s/|w_q − w_k|, …) in one coordinate
        s = 30.0
        x = torch.tensor([[s, 0.0], [-2 * s, 0.0], [0.0, 0.0]], dtype=torch.float64)
        return module, Public(module, tied=False), x
    if form == "without A_h":  # along null(W_Q) tokens grow and the weights do not notice
        with torch.no_grad():
            module.q_proj_weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 0.0]]))
        x = torch.tensor([[0.0, 0.0], [0.7, 1e4], [-0.7, -1e4]], dtype=torch.float64)
        return module, Public(module, factor=False), x
    # without 1/√k, in the scores and in A_h: the bound has it
    module = lt.L2SelfAttention(16, 1, dtype=torch.float64)
    with torch.no_grad():
        for p in (module.q_proj_weight, module.v_proj_weight, module.out_proj_weight):
            p.copy_(torch.eye(16))
    s = 1.5  # near √(p + 1), where one token is torn between two groups
    x = torch.zeros(15, 16, dtype=torch.float64)
    x[1:8, 0], x[8:, 0] = s, -s
    return module, Public(module, scaled=False), x


@pytest.mark.parametrize("form", ["untied", "without A_h", "not scaled"])
def test_the_wrong_forms_exceed_the_bound_that_ours_stays_below(form):
    module, wrong, x = counterexample(form)
    with torch.no_grad():
        bound = float(module.lipschitz_bound(len(x), norm="token"))
    right = lt.local_constant(lambda at: module(at)[0], x, norm="token").lower
    assert right <= bound
    assert lt.local_constant(wrong, x, norm="token").lower > bound

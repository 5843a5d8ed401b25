"""Constants from above in torch: those of the core, composed, proved, differentiable, never exceeded, and kept."""

import copy
import math
import os

import numpy as np
import pytest

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional

import lipscope  # noqa: E402
import lipscope.torch as lt  # noqa: E402
from lipscope.torch.arithmetic import Differentiable, Proved  # noqa: E402
from lipscope.torch.plain_kernels import plain_kernels  # noqa: E402
from test_torch_self_attention import module_of  # noqa: E402

LIPSCHITZ = [lt.L2SelfAttention, lt.CosineSelfAttention, lt.SigmoidSelfAttention]


def proved(model, *args, **kwargs):
    with torch.no_grad():
        return float(lt.lipschitz_bound(model, *args, **kwargs))


def trained(model, *args, **kwargs):
    bound = lt.lipschitz_bound(model, *args, **kwargs)
    assert bound.dim() == 0 and bound.requires_grad
    return float(bound.detach())


@pytest.mark.parametrize("mask", ["none", "causal"])
@pytest.mark.parametrize("norm", ["2", "token", "inf"])
@pytest.mark.parametrize("n", [1, 2, 7, 300])
def test_l2_bounds_are_those_of_the_core(n, norm, mask):
    module = module_of(lt.L2SelfAttention)
    known = lipscope.bound(module.to_attention(mask=mask), length=n, norm=norm, progress=False)
    # in the inf-norm the core has l2_coordinates as well, which torch has not
    best = next(r for r in known if r.upper_by != "l2_coordinates")
    record = module.proved_bound(n, norm, mask=mask)
    assert record.upper_by == best.upper_by and known[0].upper <= best.upper
    assert abs(record.upper / best.upper - 1.0) < 1e-12
    assert abs(trained(module, n, norm, mask=mask) / best.upper - 1.0) < 1e-9
    with torch.no_grad():
        number = module.lipschitz_bound(n, norm, mask=mask)
    assert number.dtype == torch.float64 and float(number) == record.upper
    # whatever the mask
    assert proved(module, n, norm) >= (1.0 - 1e-12) * record.upper
    if norm == "2":
        every = lipscope.bound(module.to_attention(mask=mask), length=n, progress=False)
        apart = next(b.upper for b in every if b.upper_by == "l2_diagonal_apart")
        assert proved(module, n) == pytest.approx(apart, rel=1e-12)


@pytest.mark.parametrize("mask", ["none", "causal"])
@pytest.mark.parametrize("n", [1, 5, 90])
@pytest.mark.parametrize("kind", [lt.CosineSelfAttention, lt.SigmoidSelfAttention])
def test_bounds_of_other_kinds_are_those_of_the_core(kind, n, mask):
    module = module_of(kind)
    radius = 2.5 if kind is lt.SigmoidSelfAttention else None
    best = lipscope.bound(module.to_attention(mask=mask), length=n, radius=radius, progress=False)[0]
    record = module.proved_bound(n, radius=radius, mask=mask)
    assert record.upper_by == best.upper_by and abs(record.upper / best.upper - 1.0) < 1e-12
    assert abs(trained(module, n, radius=radius, mask=mask) / best.upper - 1.0) < 1e-9
    assert proved(module, n, radius=radius) >= (1.0 - 1e-12) * record.upper


def test_cosine_bounds_for_any_mask_and_in_the_token_norm():
    module = module_of(lt.CosineSelfAttention, heads=1, tau=3.0, nu=2.0, epsilon=0.25)
    q, k, v, o = (float(np.linalg.norm(p.detach().numpy(), 2)) for p in module.parameters())
    for n in (1, 9):
        expected = 2.0 / 0.5 * (3.0 * q + math.sqrt(n) * (3.0 * k + v)) * o
        assert proved(module, n) == pytest.approx(expected, rel=1e-9)
        assert proved(module, n, "token") == pytest.approx(2.0 / 0.5 * (3.0 * q + 3.0 * k + v) * o, rel=1e-9)


@pytest.mark.parametrize("mask, name", [("none", "column_sums"), ("causal", "column_sums_causal")])
def test_the_bound_of_torchs_own_attention_is_that_of_the_core(mask, name):
    torch.manual_seed(0)
    module = nn.MultiheadAttention(8, 2, bias=False, dtype=torch.float64)
    for norm, bound in (("2", name), ("token", "row_sums")):
        layer = lipscope.Attention.from_torch(module, mask=mask)
        every = lipscope.bound(layer, length=6, radius=0.7, norm=norm, progress=False)
        expected = next(b for b in every if b.upper_by == bound).upper
        assert proved(module, 6, norm, 0.7, mask=mask) == pytest.approx(expected, rel=1e-12)
        assert trained(module, 6, norm, 0.7, mask=mask) == pytest.approx(expected, rel=1e-9)
    with pytest.raises(lipscope.InputError, match="MultiheadAttention has no constant over all inputs; give radius"):
        lt.lipschitz_bound(module, 6)


def test_a_contractive_layer_is_proved_to_be_one():
    for dtype in (torch.float32, torch.float64):
        for norm in ("inf", "2", "token"):
            module = module_of(lt.ContractiveL2SelfAttention, dtype, norm=norm, contraction=0.9)
            for n in (1, 5, 200):
                assert 0.89 < proved(module, n, norm) <= 0.9
                assert 0.89 < trained(module, n, norm) <= 0.9 + 1e-6


def test_bounds_have_the_gradient_of_the_bound():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.LayerNorm(6), nn.Linear(6, 9), nn.GELU(), nn.Linear(9, 6), lt.Residual(module_of(lt.L2SelfAttention, d=6))
    ).double()
    with torch.no_grad():  # the largest of equal numbers has no gradient
        model[0].weight.normal_()
    for module, radius in (
        (module_of(lt.L2SelfAttention, d=6), None),
        (module_of(lt.CosineSelfAttention, d=6), None),
        (module_of(lt.SigmoidSelfAttention, d=6), 1.5),
        (module_of(lt.ContractiveL2SelfAttention, d=6, norm="2"), None),
        (lt.CappedLinear(6, 5, dtype=torch.float64, cap=0.3), None),
        (model, None),
    ):
        for norm in ("2", "token", "inf"):
            if norm == "inf" and isinstance(module, (lt.CosineSelfAttention, lt.SigmoidSelfAttention)):
                continue
            for mask in ("any", "causal"):
                weights = [p for p in module.parameters()]
                over = {"n": 5, "norm": norm, "radius": radius, "mask": mask}
                slopes = torch.autograd.grad(lt.lipschitz_bound(module, **over), weights, allow_unused=True)
                for weight, slope in zip(weights, slopes):
                    change = torch.randn_like(weight)
                    expected = 0.0 if slope is None else float((slope * change).sum())
                    ends = []
                    for step in (1e-6, -1e-6):
                        with torch.no_grad():
                            weight.add_(step * change)
                        ends.append(float(lt.lipschitz_bound(module, **over).detach()))
                        with torch.no_grad():
                            weight.sub_(step * change)
                    size = max(1.0, abs(ends[0]))
                    assert abs((ends[0] - ends[1]) / 2e-6 - expected) < 1e-4 * size


def test_models_compose():
    torch.manual_seed(0)
    first, second, norm = nn.Linear(6, 9), nn.Linear(9, 6), nn.LayerNorm(6)
    one, two = (float(np.linalg.norm(m.weight.detach().double().numpy(), 2)) for m in (first, second))
    mlp = nn.Sequential(first, nn.GELU(), nn.Dropout(0.1), second)
    assert abs(proved(mlp) / (one * 1.1290 * two) - 1.0) < 1e-9
    assert abs(proved(lt.Residual(mlp)) / (1.0 + one * 1.1290 * two) - 1.0) < 1e-9
    rows = [float(np.abs(m.weight.detach().double().numpy()).sum(1).max()) for m in (first, second)]
    assert abs(proved(mlp, norm="inf") / (rows[0] * 1.1290 * rows[1]) - 1.0) < 1e-9
    assert abs(proved(norm) * math.sqrt(1e-5) - 1.0) < 1e-9
    for norm_first in (False, True):
        layer = nn.TransformerEncoderLayer(6, 2, 9, batch_first=True, norm_first=norm_first, activation="gelu").eval()
        layer.self_attn = lt.L2SelfAttention(6, 2)
        attention = proved(layer.self_attn, 5)
        branch = np.prod([np.linalg.norm(m.weight.detach().double().numpy(), 2) for m in (layer.linear1, layer.linear2)]) * 1.1290
        ln = 1.0 / math.sqrt(1e-5)
        expected = (1 + attention * ln) * (1 + branch * ln) if norm_first else (1 + attention) * ln * (1 + branch) * ln
        assert abs(proved(layer, 5) / expected - 1.0) < 1e-9
        encoder = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(6))
        assert abs(proved(encoder, 5) / (expected**2 * ln) - 1.0) < 1e-9
        record = lt.proved_bound(encoder, 5)
        assert record.upper_is == "proved" and record.details["parts"][0]["module"].startswith("layers.0.")


def test_a_layer_norm_gives_the_radius_that_attention_needs():
    attention = module_of(lt.SigmoidSelfAttention, d=6)
    model = nn.Sequential(nn.LayerNorm(6, dtype=torch.float64), attention)
    expected = proved(attention, 4, radius=math.sqrt(6.0)) / math.sqrt(1e-5)
    assert abs(proved(model, 4) / expected - 1.0) < 1e-9
    twice = nn.Sequential(nn.LayerNorm(6, dtype=torch.float64), nn.Linear(6, 6, dtype=torch.float64), nn.Tanh(), attention)
    assert proved(twice, 4) > 0.0


def test_radii_are_never_left():
    torch.manual_seed(0)
    from lipscope.torch.bound import constant_of, inputs

    modules = [
        module_of(lt.L2SelfAttention, d=6, bias=True), module_of(lt.CosineSelfAttention, d=6, bias=True),
        module_of(lt.SigmoidSelfAttention, d=6, bias=True), module_of(lt.ContractiveL2SelfAttention, d=6, bias=True),
        nn.MultiheadAttention(6, 2, batch_first=True), nn.Linear(6, 4), nn.LayerNorm(6), nn.GELU(), nn.SiLU(), nn.Tanh(),
        lt.Residual(nn.Linear(6, 6)), lt.CappedLinear(6, 6, cap=0.5), lt.InvertibleResidual(nn.Linear(6, 6), 0.5), nn.SELU(),
        nn.Softmax(-1), nn.ELU(2.0), nn.LeakyReLU(3.0), nn.PReLU(),
    ]  # fmt: skip
    for module in modules:
        module = module.double().eval()
        out = constant_of(module, inputs(Proved(), 5, "2", 1.7, "any")).radius
        for _ in range(20):
            x = torch.randn(20, 5, 6, dtype=torch.float64)
            x = 1.7 * x / x.norm(dim=-1, keepdim=True)
            y = module(x, x, x) if isinstance(module, nn.MultiheadAttention) else module(x)
            y = y[0] if isinstance(y, tuple) else y
            assert float(y.norm(dim=-1).max()) <= Proved().number(out).value * (1 + 1e-12)


class Unknown(nn.Module):
    def forward(self, x):
        return x**2


class Doubled(nn.Module):
    """A module of a user, who says what its constant is."""

    def forward(self, x):
        return 2 * x

    def constant(self, over):
        return lt.Constant(over.arithmetic.number(2.0), None if over.radius is None else over.radius * 2.0, "doubled")


def test_own_modules_take_part():
    assert proved(nn.Sequential(Doubled(), Doubled())) == pytest.approx(4.0, rel=1e-12)


def test_what_cannot_be_bounded_is_named():
    hooked = nn.Linear(3, 3)
    hooked.register_forward_hook(lambda module, x, y: 2 * y)
    normed = nn.utils.spectral_norm(nn.Linear(3, 3))
    for model, over, message in [
        (nn.Sequential(nn.ReLU(), nn.Sequential(Unknown())), {}, "1.0: Unknown has no bound that is known here"),
        (Unknown(), {}, "model: Unknown has no bound"),
        (nn.Sequential(nn.BatchNorm1d(3)), {}, "0: BatchNorm1d has no bound"),
        (lt.Residual(module_of(lt.SigmoidSelfAttention)), {"n": 3}, "branch: SigmoidSelfAttention has no constant over all inputs"),
        (module_of(lt.CosineSelfAttention), {"n": 3, "norm": "inf"}, "model: CosineSelfAttention has no bound in the inf-norm"),
        (nn.LayerNorm((2, 3)), {}, "goes over the axes"),
        (nn.LayerNorm(3, eps=0.0), {}, "with eps 0 has no constant"),
        (nn.Sequential(hooked), {}, "0: Linear has forward hooks"),
        (normed, {}, "Linear has forward hooks"),
        (nn.Softmax(0), {}, "Softmax over axis 0"),
        (nn.Sequential(module_of(lt.L2SelfAttention)), {}, "0: L2SelfAttention has a constant that depends on the number of tokens"),
        (nn.Linear(3, 3), {"n": 0}, "n: 0"),
        (nn.Linear(3, 3), {"norm": "fro"}, "norm: 'fro'"),
        (nn.Linear(3, 3), {"mask": "all"}, "mask: 'all'"),
        (nn.Linear(3, 3), {"radius": -1.0}, "radius: -1.0"),
    ]:  # fmt: skip
        with pytest.raises(lipscope.InputError, match=message):
            lt.lipschitz_bound(model, **over)
        with pytest.raises(lipscope.InputError, match=message):
            lt.proved_bound(model, **over)
    broken = nn.Linear(3, 3)
    broken.weight.data[0, 0] = math.nan
    with pytest.raises(ValueError, match="nan"):
        lt.proved_bound(broken)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_weights_in_half_precision_are_read_as_they_are(dtype):
    for module in (module_of(lt.L2SelfAttention, dtype), lt.CappedLinear(12, 12, dtype=dtype, cap=0.5), nn.Linear(12, 9, dtype=dtype)):
        for norm in ("2", "inf", "token"):
            exact = proved(copy.deepcopy(module).double(), 5, norm) if not isinstance(module, lt.CappedLinear) else None
            assert exact is None or proved(module, 5, norm) == exact
            assert trained(module, 5, norm) == pytest.approx(proved(module, 5, norm), rel=1e-5)
    with torch.no_grad():
        module = lt.CappedLinear(12, 12, dtype=dtype, cap=0.5)
        module.weight.mul_(100.0)
    assert 0.2 < proved(module) <= 0.5


def test_a_bound_beyond_all_numbers_has_its_logarithm():
    layer = nn.Linear(4, 4)
    with torch.no_grad():
        layer.weight.copy_(1e30 * torch.eye(4))
    record = lt.proved_bound(nn.Sequential(*[layer] * 20))
    assert record.upper is None and abs(record.upper_log10 - 600.0) < 1e-6
    assert proved(nn.Sequential(*[layer] * 20)) == math.inf


def test_proved_norms_are_above_and_close():
    rng = np.random.default_rng(0)
    for shape in ((1, 1), (3, 7), (40, 30), (64, 64)):
        w = torch.from_numpy(rng.standard_normal(shape))
        for dtype in (torch.float32, torch.float64):
            exact = float(np.linalg.norm(w.to(dtype).double().numpy(), 2))
            above = Proved().norm(w.to(dtype)).value
            assert exact * (1 - 1e-13) <= above <= exact * (1 + 1e-9)
            assert abs(float(Differentiable().norm(w)) / float(np.linalg.norm(w.numpy(), 2)) - 1) < 1e-12
        right = torch.from_numpy(rng.standard_normal((shape[1], 5)))
        product = float(np.linalg.norm((w @ right).numpy(), 2))
        assert product * (1 - 1e-13) <= Proved().product_norm(w, right).value <= product * (1 + 1e-6)
        assert abs(float(Differentiable().product_norm(w, right)) / product - 1) < 1e-12


# ---- attacked


def strongest(f, x, norm):
    """How strongly f reacts at x, [n, d], by its Jacobian; with u and v such that this is ⟨u, J v⟩."""
    unknowns = x.numel()
    copies = x.expand(unknowns, *x.shape).clone().requires_grad_()
    j = torch.autograd.grad(f(copies).flatten(1).diagonal().sum(), copies)[0].flatten(1)  # a row from each copy
    if norm == "2":
        left, values, right = torch.linalg.svd(j)
        u, v = left[:, 0], right[0]
    elif norm == "inf":
        row = int(j.abs().sum(1).argmax())
        u, v = torch.eye(unknowns, dtype=x.dtype)[row], j[row].sign()
    else:  # the rows of a token, and for each the direction that all tokens of the input push it to, by turns
        blocks = j.reshape(*x.shape, *x.shape).permute(0, 2, 1, 3)
        out = torch.linalg.svd(blocks.sum(1))[0][..., 0]
        for _ in range(10):
            back = torch.einsum("io,ijod->ijd", out, blocks)
            back = back / back.norm(dim=-1, keepdim=True).clamp(min=1e-300)
            out = torch.einsum("ijod,ijd->io", blocks, back)
            sizes = out.norm(dim=-1)
            out = out / sizes[:, None].clamp(min=1e-300)
        token = int(sizes.argmax())
        u, v = torch.zeros_like(x), back[token].flatten()
        u[token] = out[token]
        u = u.flatten()
    return float(u @ (j @ v)), u.reshape(x.shape), v.reshape(x.shape)


def ascended(f, x, norm, radius, steps):
    """The largest local constant on the way of a gradient ascent from x, and where."""
    most, best = -1.0, x
    for _ in range(steps):
        found, u, v = strongest(f, x, norm)
        most, best = (found, x) if found > most else (most, best)
        at = x.clone().requires_grad_()
        with plain_kernels():
            pulled = torch.autograd.grad(f(at[None])[0], at, u, create_graph=True)[0]
            slope = torch.autograd.grad((pulled * v).sum(), at)[0]
        size = float(slope.norm())
        if size == 0.0:
            break
        x = x + 0.3 * float(x.norm()) * slope / size
        if radius is not None:
            x = x * (radius / x.norm(dim=-1, keepdim=True)).clamp(max=1.0)
    return most, best


def attack(seed):
    """The largest constant found of a random module at a random input, over what is proved of it; at most 1."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    heads = int(rng.integers(1, 4))
    d, n = heads * int(rng.integers(1, 4)), int(rng.integers(1, 7))
    kind = [lt.L2SelfAttention, lt.ContractiveL2SelfAttention, lt.CosineSelfAttention, lt.SigmoidSelfAttention][seed % 4]
    norm = ["2", "token", "inf"][seed // 4 % 3]
    if norm == "inf" and seed % 4 > 1:
        norm = "2"
    module = module_of(kind, d=d, heads=heads, seed=seed, scale=float(10.0 ** rng.uniform(-1, 0.7)))
    if kind is lt.CosineSelfAttention:
        module.epsilon = float(10.0 ** rng.uniform(-3, 1))
    radius = float(10.0 ** rng.uniform(-1, 1)) if kind is lt.SigmoidSelfAttention else None
    x = torch.randn(n, d, dtype=torch.float64) * float(10.0 ** rng.uniform(-1, 1))
    if radius is not None:
        x = x * (radius / x.norm(dim=-1, keepdim=True)).clamp(max=1.0)
    masks, mask = [
        ({}, "none"), ({"is_causal": True}, "causal"), ({"attn_mask": ~torch.eye(n, dtype=torch.bool) & (torch.rand(n, n) < 0.5)}, "any"),
        ({"key_padding_mask": torch.rand(1, n) < 0.3}, "any"), ({"attn_mask": -torch.rand(n, n).fill_diagonal_(0.0)}, "any"),
    ][seed // 12 % 5]  # fmt: skip
    bound = proved(module, n, norm, radius, mask=mask)
    for p in module.parameters():
        p.requires_grad_(False)

    def f(at):
        padded = masks.get("key_padding_mask")
        every = masks if padded is None else {"key_padding_mask": padded.expand(len(at), n)}
        return module(at, **every)[0]

    most, best = ascended(f, x, norm, radius, 4)
    if seed % 20 == 0:
        most = max(most, lt.local_constant(f, best[None], norm=norm).lower)
    if seed % 20 == 1 + seed // 20 % 4 and mask != "any" and kind is not lt.ContractiveL2SelfAttention:
        layer = module.to_attention(mask)
        found = lipscope.search(layer, length=n, norm=norm, radius=radius or 10.0, restarts=2, max_evaluations=300, threads=1)
        most = max(most, found.lower)
    return most / bound


def test_bounds_are_never_exceeded():
    """bench/peers/attack_bounds.py does this for 10,000 modules."""
    cases = int(os.environ.get("LIPSCOPE_CASES", "60"))
    assert max(attack(seed) for seed in range(cases)) <= 1.0 + 1e-9


# ---- penalties and the promise


def test_the_local_penalty_is_the_constant_and_its_gradient():
    module = module_of(lt.L2SelfAttention, d=4, heads=2)
    x = torch.randn(3, 4, 4, dtype=torch.float64)
    for norm in ("2", "inf", "token"):
        penalty = lt.local_penalty(module, x, norm=norm, tolerance=1e-9, max_steps=300)
        each = [lt.local_constant(module, one, output=0, norm=norm).lower for one in x[:, None]]
        assert abs(float(penalty.detach()) / max(each) - 1.0) < 1e-6
        slope = torch.autograd.grad(penalty, module.q_proj_weight)[0]
        change = torch.randn_like(slope)
        ends = []
        for step in (1e-5, -1e-5):
            other = copy.deepcopy(module)
            with torch.no_grad():
                other.q_proj_weight.add_(step * change)
            ends.append(max(lt.local_constant(other, one, output=0, norm=norm).lower for one in x[:, None]))
        assert abs((ends[0] - ends[1]) / 2e-5 - float((slope * change).sum())) < 1e-3 * max(1.0, abs(ends[0]))
    with torch.no_grad():
        assert not lt.local_penalty(module, x).requires_grad
    dropped = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)).train()
    assert lt.local_penalty(dropped, x.float()).requires_grad and dropped.training and dropped[1].training
    with pytest.raises(lipscope.InputError, match="direction: expected"):
        lt.local_penalty(module, x, direction=x[0])


def test_the_penalty_on_attention_maps():
    uniform = torch.full((2, 3, 4, 4), 0.25)
    assert float(lt.attention_map_penalty(uniform)) == pytest.approx(0.25)
    assert float(lt.attention_map_penalty(torch.eye(4))) == 0.0
    half = torch.tensor([[0.5, 0.5], [1.0, 0.0]])
    assert float(lt.attention_map_penalty(half)) == pytest.approx(0.5)  # the most there is
    assert float(lt.attention_map_penalty(torch.ones(1, 1))) == 0.0
    p = torch.rand(6, 5, dtype=torch.float64).softmax(-1)
    jacobian = torch.diag_embed(p) - p[:, :, None] * p[:, None, :]
    assert float(torch.linalg.matrix_norm(jacobian, 2).max()) <= float(lt.attention_map_penalty(p))
    module = module_of(lt.CosineSelfAttention)
    weights = module(torch.randn(2, 5, 12, dtype=torch.float64), average_attn_weights=False)[1]
    lt.attention_map_penalty(weights).backward()
    assert module.q_proj_weight.grad.abs().sum() > 0
    with pytest.raises(lipscope.InputError, match="weights: expected attention maps"):
        lt.attention_map_penalty(torch.ones(3))


def promising(dtype=torch.float32):
    torch.manual_seed(0)
    return nn.Sequential(
        lt.Residual(lt.L2SelfAttention(8, 2)),
        lt.Residual(nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))),
        lt.CappedLinear(8, 8, cap=3.0),
        nn.Linear(8, 3),
    ).to(dtype)


@pytest.mark.parametrize("norm", ["2", "inf", "token"])
def test_a_promise_is_kept_after_every_step(norm):
    model = promising()
    promise = lt.Promise(model, 3.0, n=6, norm=norm)
    assert 2.99 < promise.proof.upper <= 3.0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    exceeded = 0
    for _ in range(5):
        optimizer.zero_grad()
        (-model(torch.randn(4, 6, 8)).square().mean()).backward()
        optimizer.step()
        exceeded += proved(model, 6, norm) > 3.0
        promise()
        assert proved(model, 6, norm) <= 3.0
    assert exceeded > 0


def test_what_is_within_a_promise_is_left_alone():
    model = promising()
    before = copy.deepcopy(model.state_dict())
    record = lt.keep_promise(model, 1e9, n=6)
    assert record.upper <= 1e9
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    # modules below the level keep their weights
    small = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    with torch.no_grad():
        small[0].weight.copy_(0.5 * torch.eye(3))
        small[1].weight.copy_(40.0 * torch.eye(3))
    lt.keep_promise(small, 4.0)
    assert torch.equal(small[0].weight, 0.5 * torch.eye(3)) and float(small[1].weight[0, 0].detach()) == pytest.approx(8.0, rel=1e-4)


def test_promises_that_cannot_be_kept_are_refused():
    with pytest.raises(lipscope.InputError, match="constant: 0.5 is below what is left"):
        lt.Promise(promising()[:2], 0.5, n=4)
    fixed = lt.Residual(module_of(lt.ContractiveL2SelfAttention))
    with pytest.raises(lipscope.InputError, match=r"branch \(ContractiveL2SelfAttention\) cannot be scaled"):
        lt.keep_promise(fixed, 1.5, n=4, norm="inf")
    with pytest.raises(lipscope.InputError, match="constant: -1"):
        lt.keep_promise(nn.Linear(2, 2), -1)


def test_a_capped_layer_never_exceeds_its_cap():
    for dtype in (torch.float32, torch.float64):
        for scale in (1e-3, 1.0, 1e3):
            layer = lt.CappedLinear(20, 30, dtype=dtype, cap=0.7)
            with torch.no_grad():
                layer.weight.mul_(scale)
            norm = float(np.linalg.norm(layer.capped_weight().detach().double().numpy(), 2))
            assert norm <= 0.7 and (norm > 0.6999 or scale < 1.0)
            assert proved(layer) <= 0.7
            if scale < 1.0:
                assert torch.equal(layer.capped_weight(), layer.weight)
            x = torch.randn(4, 20, dtype=dtype)
            assert torch.allclose(layer.to_linear()(x), layer(x), atol=1e-5)
    assert list(layer.state_dict()) == ["weight", "bias"]
    small = lt.CappedLinear(3, 4, dtype=torch.float64, cap=0.2)
    assert torch.autograd.gradcheck(small, torch.randn(2, 3, dtype=torch.float64, requires_grad=True))
    with pytest.raises(lipscope.InputError, match="cap: 0"):
        lt.CappedLinear(3, 3, cap=0.0)


def test_the_session_of_the_promise():
    import doctest
    import importlib

    found = doctest.testmod(importlib.import_module("lipscope.torch.promise"))
    assert found.attempted > 0 and found.failed == 0

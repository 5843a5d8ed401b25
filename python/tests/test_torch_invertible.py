"""Residual maps that are inverted with a proof, and their log-determinants, against the core and dense Jacobians."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
nn = torch.nn

import lipscope  # noqa: E402
import lipscope.torch as lt  # noqa: E402
from test_torch_self_attention import module_of  # noqa: E402


@pytest.mark.parametrize("norm", ["inf", "2", "token"])
@pytest.mark.parametrize("c", [0.5, 0.9])
def test_the_inverse_is_as_close_as_it_says(c, norm):
    g = lt.InvertibleResidual(module_of(lt.ContractiveL2SelfAttention, d=8, heads=2, norm=norm), c, norm=norm)
    x = torch.randn(3, 7, 8, dtype=torch.float64)
    for masks in ({}, {"is_causal": True}):
        y = g(x, **masks).detach()
        found = g.inverse(y, **masks)
        assert found.status == "converged" and c * 0.99 < found.contraction <= c
        assert found.iterations <= found.enough_iterations
        size = {"inf": lambda z: z.abs().max(), "2": lambda z: z.flatten(1).norm(dim=1).max(), "token": lambda z: z.norm(dim=-1).max()}
        error = float(size[norm](found.x - x))
        assert error <= found.error_bound <= 1e-10 * max(1.0, float(size[norm](y)))
        assert found.residual <= 1e-9


def test_a_contraction_that_is_tight_needs_the_iterations_that_were_told():
    linear = nn.Linear(2, 2, bias=False, dtype=torch.float64)
    with torch.no_grad():
        linear.weight.copy_(torch.eye(2))
    found = lt.InvertibleResidual(linear, 0.5, norm="inf").inverse(torch.ones(1, 2, dtype=torch.float64))
    assert torch.allclose(found.x, torch.full((1, 2), 2 / 3, dtype=torch.float64), atol=1e-9)
    assert found.enough_iterations - 3 <= found.iterations <= found.enough_iterations
    assert float((found.x - 2 / 3).abs().max()) <= found.error_bound


def test_the_core_finds_the_same_input():
    module = module_of(lt.ContractiveL2SelfAttention, d=8, heads=2)
    g = lt.InvertibleResidual(module, 0.7)
    y = torch.randn(6, 8, dtype=torch.float64)
    core = lipscope.invert(module.to_attention(), y.numpy(), scale=0.7, progress=False)
    found = g.inverse(y)
    assert core.status == found.status == "converged" and abs(found.iterations - core.steps) <= 1
    np.testing.assert_allclose(found.x.numpy(), core.x, atol=2e-10)


def test_f32_weights_are_inverted_in_f64():
    g = lt.InvertibleResidual(module_of(lt.ContractiveL2SelfAttention, torch.float32), 0.9)
    x = torch.randn(1, 5, 12)
    y = g(x).detach()
    found = g.inverse(y)
    assert found.x.dtype == torch.float32 and found.error_bound < 1e-6
    exact = g.double()
    assert float((exact(found.x.double()) - y.double()).abs().max()) <= 2 * found.error_bound


def test_without_a_proof_nothing_is_said():
    wide = lt.InvertibleResidual(module_of(lt.L2SelfAttention, scale=0.05), 0.5)
    found = wide.inverse(torch.randn(1, 5, 12, dtype=torch.float64))
    strong = module_of(lt.L2SelfAttention, scale=2.0)
    lost = lt.InvertibleResidual(strong, 0.9).inverse(torch.randn(1, 5, 12, dtype=torch.float64), max_iterations=50)
    assert lost.error_bound is None and lost.contraction is None and lost.enough_iterations is None
    assert lost.status in ("not-converged", "diverged") and found.status == "converged"


def dense_log_determinant(g, x):
    jacobian = torch.autograd.functional.jacobian(lambda at: g(at[None])[0], x).reshape(x.numel(), x.numel())
    return float(torch.linalg.slogdet(jacobian)[1])


def test_log_determinants_of_small_inputs_are_exact():
    g = lt.InvertibleResidual(module_of(lt.ContractiveL2SelfAttention, d=6, heads=2, scale=0.5), 0.9)
    x = torch.randn(3, 4, 6, dtype=torch.float64)
    found = g.log_determinant(x)
    assert found.exact and found.truncation == 0.0 and not found.error_bar.any()
    for i in range(3):
        assert abs(float(found.value[i].detach()) - dense_log_determinant(g, x[i])) < 1e-12
    assert g.log_determinant(x[0]).value.shape == ()
    slope = torch.autograd.grad(found.value.sum(), g.f.v_proj_weight)[0]
    assert slope.abs().sum() > 0
    with torch.no_grad():
        assert not g.log_determinant(x).value.requires_grad


def test_the_series_is_within_its_error_bar():
    # a map that is strong enough to be seen: a capped linear layer of each token
    torch.manual_seed(0)
    linear = lt.CappedLinear(8, 8, bias=False, dtype=torch.float64, cap=1.0)
    g = lt.InvertibleResidual(linear, 0.7, norm="2")
    x = torch.randn(2, 6, 8, dtype=torch.float64)
    exact = 6 * float(torch.linalg.slogdet(torch.eye(8, dtype=torch.float64) + 0.7 * linear.capped_weight())[1].detach())
    found = g.log_determinant(x, exact=False, probes=64, truncation=1e-4, confidence=0.999)
    assert not found.exact and found.probes == 64 and 0.0 < found.truncation <= 1e-4
    assert (abs(found.value.detach() - exact) <= found.error_bar + found.truncation).all()
    assert (found.error_bar > 0).all() and float(found.error_bar.max()) < 1.0
    slope = torch.autograd.grad(found.value.sum(), linear.weight)[0]
    assert slope.abs().sum() > 0
    # Student's interval, as the core has it
    from lipscope import _core

    assert abs(_core.student_quantile(0.975, 15) - 2.131449545559323) < 1e-12


def test_refusals():
    g = lt.InvertibleResidual(module_of(lt.ContractiveL2SelfAttention), 0.9)
    x = torch.randn(1, 5, 12, dtype=torch.float64)
    for wrong, message in [
        (lambda: lt.InvertibleResidual(g.f, 0.0), "c: 0.0"),
        (lambda: lt.InvertibleResidual(g.f, 0.5, norm="fro"), "norm: 'fro'"),
        (lambda: g.inverse(x[0, 0]), "y: shape"),
        (lambda: g.inverse(x * math.nan), "y: 60 of its 60 numbers are not finite"),
        (lambda: g.inverse(x, tolerance=0.0), "tolerance: 0.0"),
        (lambda: g.log_determinant(x, probes=1), "probes: 1"),
        (lambda: lt.InvertibleResidual(nn.Tanhshrink(), 2.0).log_determinant(x, exact=False), "not proved to be below 1"),
        (lambda: lt.InvertibleResidual(module_of(lt.SigmoidSelfAttention), 0.5).inverse(x), "SigmoidSelfAttention has no"),
    ]:  # fmt: skip
        with pytest.raises(lipscope.InputError, match=message):
            wrong()


def test_kim21s_experiment_in_torch():
    """Dot-product attention is not inverted by the iteration where contractive attention is, to 1e-10."""
    torch.manual_seed(0)
    x = torch.zeros(1, 16, 16, dtype=torch.float64)
    x[:, 1:] = 20.0 * torch.rand(1, 15, 16, dtype=torch.float64) - 10.0
    contractive = lt.InvertibleResidual(module_of(lt.ContractiveL2SelfAttention, d=16, heads=4), 0.9)
    found = contractive.inverse(contractive(x).detach())
    assert float((found.x - x).abs().max()) <= found.error_bound < 1e-8
    assert np.isfinite(found.residual)

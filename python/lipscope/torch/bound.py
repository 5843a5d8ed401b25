"""The Lipschitz constant of a model from above: composed of its modules', differentiable, or proved.

Every module is asked for its constant by :func:`constant_of`. The modules of this package, and modules of your own,
answer by a method ``constant(over: Inputs) -> Constant``; those of torch that are known are in a table here. Anything
else is refused by its path and class.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from lipscope import _core
from lipscope.errors import InputError
from lipscope.records import Record
from lipscope.torch.arithmetic import ABOVE, Arithmetic, Differentiable, Number, Proved
from lipscope.torch.constants import dot_constant
from lipscope.torch.function import sha256_of

NORMS = ("2", "inf", "token")
MASKS = ("any", "none", "causal")


@dataclass(frozen=True)
class Inputs:
    """What a constant holds for: sequences of n tokens of norm up to ``radius`` (None: any), and how it is measured."""

    arithmetic: Arithmetic
    n: int | None  # None: of any length, for what does not depend on it
    norm: str  # "2", "inf" or "token", of sequences
    mask: str  # what tokens see: "none" hides nothing, "causal"; "any": whatever attention allows
    radius: Number | None
    path: str = ""  # of the module that is asked
    parts: list[Part] = field(default_factory=list)  # of the model, as they are found
    known: dict[str, Constant] | None = None  # constants to take in place of the modules' own, by path

    def inside(self, name: str) -> Inputs:
        """The same, for a module of that name in this one."""
        return replace(self, path=f"{self.path}.{name}" if self.path else name)

    def after(self, before: Constant) -> Inputs:
        """What comes out of a map that these go into."""
        return replace(self, radius=before.radius)

    def length_for(self, module: nn.Module) -> int:
        """n, for a module whose constant depends on it."""
        if self.n is None:
            raise self.refuse(module, "has a constant that depends on the number of tokens; give n")
        return self.n

    def refuse(self, module: Any, why: str) -> InputError:
        """An InputError that names the module."""
        return InputError(f"{self.path or 'model'}: {type(module).__name__} {why}")


@dataclass(frozen=True)
class Constant:
    """A map's Lipschitz constant from above, by which theorem, and the radius of what comes out (None: any)."""

    value: Number
    radius: Number | None
    by: str


@dataclass(frozen=True)
class Part:
    """A module with weights of its own, and its constant."""

    path: str
    module: nn.Module
    constant: Constant


def lipschitz_bound(
    model: nn.Module, n: int | None = None, norm: str = "2", radius: float | None = None, *, mask: str = "any"
) -> torch.Tensor:
    """How strongly the model can amplify a change of its input, from above: a tensor to add to a loss.

    Where gradients are recorded it is differentiable by the weights, and rounded as torch rounds. Under
    ``torch.no_grad()`` it is the number of :func:`proved_bound`, in f64.

    Args:
        model: A module of this package, Linear, LayerNorm, activations, Sequential, TransformerEncoderLayer,
            TransformerEncoder, MultiheadAttention (over a ball), or a module with a method ``constant``. Meant is the
            model in evaluation mode, without dropout, whether it is training now or not.
        n: The number of tokens of a sequence. Only attention asks for it.
        norm: Of sequences: "2", all entries; "inf", the largest entry; "token", the longest token.
        radius: No token of the input is longer, in the 2-norm. None: any. Sigmoid and dot-product attention need it,
            unless a layer norm is ahead of them.
        mask: "none" or "causal" where attention is only called so; some bounds are then smaller. "any" holds for
            every mask that the modules take.

    Raises:
        InputError: With the path and the class of a module that has no such bound.
    """
    over = inputs(Proved() if not torch.is_grad_enabled() else Differentiable(), n, norm, radius, mask)
    if over.arithmetic.proves:
        return torch.tensor(_proved(model, over).value.value, dtype=torch.float64)
    value = constant_of(model, over).value
    return value if isinstance(value, torch.Tensor) else torch.tensor(float(value))


def proved_bound(
    model: nn.Module, n: int | None = None, norm: str = "2", radius: float | None = None, *, mask: str = "any"
) -> Record:
    """The same as a record: ``upper`` (or ``upper_log10``, beyond f64) is proved by the C++ core, rounding up.

    Norms of weights, read as they are in f64, come from Cholesky factorisations. What is proved is the constant of
    the map with these weights in exact arithmetic. ``details["parts"]`` has the constant of every module.
    """
    begin = time.perf_counter()
    over = inputs(Proved(), n, norm, radius, mask)
    return record_of(model, over, _proved(model, over), begin)


def record_of(model: nn.Module, over: Inputs, constant: Constant, begin: float) -> Record:
    """The record of a constant that was proved over these inputs."""
    upper = constant.value.value
    radius = None if over.radius is None else over.radius.value
    kind = getattr(model, "kind", None)
    return Record(
        {
            "schema": 2,
            "command": "bound",
            "version": _core.__version__,
            "model": type(model).__name__,
            "model_sha256": sha256_of(model),
            "layer": None,
            "head": "all",
            "map": "attn" if kind else "model",
            "kind": kind,
            "mask": over.mask,
            "norm": over.norm,
            "n": over.n,
            "radius_max": radius,
            "quantity": "constant",
            "lower": None,
            "upper": upper if math.isfinite(upper) else None,
            "upper_log10": constant.value.log10 if upper > 0 else None,
            "upper_by": constant.by,
            "upper_is": "proved",
            "scope": "everywhere" if radius is None else "ball",
            "seconds": time.perf_counter() - begin,
            "parameters": {"bound": constant.by},
            "details": {"parts": [_summary(part, over.arithmetic) for part in over.parts]},
        }
    )


def _summary(part: Part, arithmetic: Arithmetic) -> dict[str, Any]:
    value = arithmetic.number(part.constant.value)
    return {
        "module": part.path,
        "class": type(part.module).__name__,
        "log10": value.log10 if value.value > 0 else None,
        "by": part.constant.by,
    }


def inputs(arithmetic: Arithmetic, n: int | None, norm: str, radius: float | None, mask: str) -> Inputs:
    """The inputs that the arguments of lipschitz_bound mean."""
    if n is not None and (isinstance(n, bool) or not isinstance(n, int) or n < 1):
        raise InputError(f"n: {n!r}; expected a number of tokens, 1 or more")
    if norm not in NORMS:
        raise InputError(f"norm: {norm!r}; expected '2', 'inf' or 'token'")
    if mask not in MASKS:
        raise InputError(f"mask: {mask!r}; expected 'any', 'none' or 'causal'")
    if radius is not None and not 0.0 < float(radius) < math.inf:
        raise InputError(f"radius: {radius}; expected a number above 0, or None")
    return Inputs(arithmetic, n, norm, mask, None if radius is None else arithmetic.number(float(radius)))


def _proved(model: nn.Module, over: Inputs) -> Constant:
    found = constant_of(model, over)
    return replace(found, value=over.arithmetic.number(found.value))


def constant_of(module: nn.Module, over: Inputs) -> Constant:
    """The constant of a module over these inputs, and what it is made of in ``over.parts``."""
    if not isinstance(module, nn.Module):
        raise over.refuse(module, "is no torch.nn.Module")
    if over.known is not None and over.path in over.known:
        return over.known[over.path]
    if module._forward_hooks or module._forward_pre_hooks:
        raise over.refuse(module, "has forward hooks, which may change what it computes")
    own = getattr(module, "constant", None)
    find = (lambda _, at: own(at)) if callable(own) else _TABLE.get(type(module))
    if find is None:
        raise over.refuse(module, "has no bound that is known here; give it a method constant(over)")
    found = find(module, over)
    if any(True for _ in module.parameters(recurse=False)):
        over.parts.append(Part(over.path, module, found))
    return found


# ---- how modules compose


def composed(over: Inputs, *maps: tuple[str, nn.Module]) -> Constant:
    """Of one after another."""
    value, by = None, []
    for name, module in maps:
        one = constant_of(module, over.inside(name))
        over = over.after(one)
        value = one.value if value is None else value * one.value
        by.append(one.by)
    if value is None:
        return Constant(1.0, over.radius, "identity")
    return Constant(value, over.radius, by[0] if len(by) == 1 else f"product({', '.join(dict.fromkeys(by))})")


def residual(over: Inputs, branch: Constant) -> Constant:
    """Of x + f(x): 1 + Lip(f)."""
    radius = None if over.radius is None or branch.radius is None else over.radius + branch.radius
    return Constant(branch.value + 1.0, radius, f"residual({branch.by})")


def _sequential(module: Any, over: Inputs) -> Constant:
    # named_children() would leave out a module that stands there twice
    return composed(over, *module._modules.items())


def _encoder_layer(layer: Any, over: Inputs) -> Constant:
    if layer.activation in (F.relu, F.gelu):
        activation: nn.Module = nn.ReLU() if layer.activation is F.relu else nn.GELU()
    elif isinstance(layer.activation, nn.Module):
        activation = layer.activation
    else:
        raise over.inside("activation").refuse(layer.activation, f"{layer.activation!r} has no known bound")
    attention = [("self_attn", layer.self_attn)]
    mlp = [("linear1", layer.linear1), ("activation", activation), ("linear2", layer.linear2)]
    if layer.norm_first:
        first = residual(over, composed(over, ("norm1", layer.norm1), *attention))
        between = over.after(first)
        second = residual(between, composed(between, ("norm2", layer.norm2), *mlp))
    else:
        first = residual(over, composed(over, *attention))
        norm1 = constant_of(layer.norm1, over.after(first).inside("norm1"))
        first = replace(norm1, value=first.value * norm1.value, by=first.by)
        between = over.after(first)
        second = residual(between, composed(between, *mlp))
        norm2 = constant_of(layer.norm2, between.after(second).inside("norm2"))
        second = replace(norm2, value=second.value * norm2.value, by=second.by)
    return Constant(first.value * second.value, second.radius, f"block({first.by}, {second.by})")


def _encoder(encoder: Any, over: Inputs) -> Constant:
    maps = [(f"layers.{i}", layer) for i, layer in enumerate(encoder.layers)]
    if encoder.norm is not None:
        maps.append(("norm", encoder.norm))
    return composed(over, *maps)


# ---- single modules


def linear_constant(weight: torch.Tensor, bias: torch.Tensor | None, over: Inputs) -> Constant:
    """Of each token's x Wᵀ + b: ‖W‖₂, or the largest sum of a row of |W| in the inf-norm."""
    a = over.arithmetic
    norm = a.norm(weight) if over.norm != "inf" or over.radius is not None else None
    radius = None
    if over.radius is not None:
        radius = norm * over.radius
        radius = radius if bias is None else radius + a.length(bias)
    return Constant(a.row_sum(weight) if over.norm == "inf" else norm, radius, "linear")


def _linear(module: Any, over: Inputs) -> Constant:
    return linear_constant(module.weight, module.bias, over)


def _norm_layer(module: Any, over: Inputs, centred: bool) -> Constant:
    """LayerNorm and RMSNorm: max|γ|/√ε, times 1 or 2 + 3^{-3/2}√(D−1) in the inf-norm: theory/norm_layer_bound.h.

    RMSNorm in the inf-norm: the same proof without the mean, which is what one of the 2 is for.
    """
    if len(module.normalized_shape) != 1:
        raise over.refuse(module, f"goes over the axes {list(module.normalized_shape)}; expected one, the last")
    a = over.arithmetic
    size = float(module.normalized_shape[0])
    epsilon = module.eps
    if epsilon is None:  # of RMSNorm: that of the type it works in
        epsilon = torch.finfo((module.weight if module.weight is not None else torch.empty(0)).dtype).eps
    if not epsilon > 0.0:
        raise over.refuse(module, "with eps 0 has no constant")
    gain = 1.0 if module.weight is None else a.largest_entry(module.weight)
    rows = 1.0
    if over.norm == "inf":
        rows = ((2.0 if centred else 1.0) + 3.0**-1.5 * math.sqrt(size - 1.0)) * ABOVE
    radius = a.number(gain) * (math.sqrt(size) * ABOVE)
    bias = getattr(module, "bias", None)
    if bias is not None:
        radius = radius + a.length(bias)
    return Constant(a.number(gain) * (rows / math.sqrt(epsilon) * ABOVE), radius, "norm_layer")


def _elementwise(slope: float | Callable[[Any], float], *, through_zero: bool = True) -> Any:
    """An activation with |act'| ≤ slope; through zero |act(x)| ≤ slope |x|."""

    def find(module: Any, over: Inputs) -> Constant:
        most = slope(module) if callable(slope) else slope
        radius = over.radius * most if through_zero and over.radius is not None else None
        return Constant(over.arithmetic.number(most), radius, "activation")

    return find


def _prelu(module: Any, over: Inputs) -> Constant:
    a = over.arithmetic
    most = a.largest([a.number(a.largest_entry(module.weight)), a.number(_one_like(module.weight, a))])
    return Constant(most, None if over.radius is None else over.radius * most, "activation")


def _one_like(weight: torch.Tensor, a: Arithmetic) -> Number:
    return 1.0 if a.proves else torch.ones((), dtype=weight.dtype, device=weight.device)


def _softmax(module: Any, over: Inputs) -> Constant:
    if module.dim != -1:
        raise over.refuse(module, f"over axis {module.dim}; expected -1, the features of a token")
    # ½ in every p-norm [Nair25]; shares have a 2-norm of at most 1
    return Constant(over.arithmetic.number(0.5), over.arithmetic.number(1.0), "nair25")


def _dot_attention(module: Any, over: Inputs) -> Constant:
    if not module._qkv_same_embed_dim or module.bias_k is not None or module.add_zero_attn:
        raise over.refuse(module, "with kdim, vdim, add_bias_kv or add_zero_attn has no bound that is known here")
    if over.radius is None:
        raise over.refuse(module, "has no constant over all inputs; give radius")
    heads = (module.num_heads, module.head_dim)
    q, k, v = (w.reshape(*heads, -1) for w in module.in_proj_weight.chunk(3))
    q_bias = v_bias = None
    if module.in_proj_bias is not None:
        q_bias, _, v_bias = (b.reshape(heads) for b in module.in_proj_bias.chunk(3))
    o = module.out_proj.weight.T.reshape(*heads, -1)
    a, n = over.arithmetic, over.length_for(module)
    found = dot_constant(a, q, k, v, o, q_bias, n=n, norm=over.norm, mask=over.mask, radius=over.radius)
    if found is None:
        raise over.refuse(module, f"has no bound in the {over.norm}-norm")
    # rows of P are means of the values
    values = a.norm(v.flatten(0, 1)) * over.radius
    values = values if v_bias is None else values + a.length(v_bias.flatten())
    radius = values * a.norm(module.out_proj.weight) * (math.sqrt(module.num_heads) * ABOVE)
    radius = radius if module.out_proj.bias is None else radius + a.length(module.out_proj.bias)
    return Constant(found[0], radius, found[1])


_TABLE: dict[type, Callable[[Any, Inputs], Constant]] = {
    nn.Sequential: _sequential,
    nn.TransformerEncoderLayer: _encoder_layer,
    nn.TransformerEncoder: _encoder,
    nn.MultiheadAttention: _dot_attention,
    nn.Linear: _linear,
    nn.LayerNorm: lambda module, over: _norm_layer(module, over, centred=True),
    **{
        kind: _elementwise(1.0)
        for kind in (nn.Identity, nn.Dropout, nn.ReLU, nn.ReLU6, nn.Tanh, nn.Softsign, nn.Softshrink, nn.Tanhshrink)
    },
    nn.Hardtanh: _elementwise(1.0, through_zero=False),
    nn.LeakyReLU: _elementwise(lambda m: max(1.0, abs(float(m.negative_slope)))),
    nn.PReLU: _prelu,
    nn.ELU: _elementwise(lambda m: max(1.0, abs(float(m.alpha)))),
    nn.SELU: _elementwise(1.7581),  # scale · alpha = 1.75809934…
    # Φ(√2) + √2 φ(√2) = 1.12890415…; its approximation by tanh reaches 1.12899307…
    nn.GELU: _elementwise(1.1290),
    nn.SiLU: _elementwise(1.0999),  # at x tanh(x/2) = 2: 1.09983932…
    nn.Sigmoid: _elementwise(0.25, through_zero=False),
    nn.LogSigmoid: _elementwise(1.0, through_zero=False),
    nn.Softmax: _softmax,
}
if hasattr(nn, "RMSNorm"):
    _TABLE[nn.RMSNorm] = lambda module, over: _norm_layer(module, over, centred=False)

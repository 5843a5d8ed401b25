"""One attention layer, from arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lipscope import _core
from lipscope.arrays import plain
from lipscope.errors import CheckFailed
from lipscope.masks import both_ends, window_of
from lipscope.records import Record, Records

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import scipy.sparse.linalg

__all__ = ["Attention"]

_MATRICES = ("q", "k", "v", "o")
_KINDS = ("dot", "l2", "l2-untied", "cosine", "sigmoid")


class Attention:
    """Multi-head self-attention with weights from NumPy, PyTorch or JAX arrays on the CPU, f32 or f64.

    The weights act from the right, x W: ``q`` and ``k`` are [d, heads * width], ``v`` is [d, heads * value width],
    ``o`` is [heads * value width, e], and a head reads its columns in order. Without ``o`` the heads are concatenated;
    tied L2 attention (``kind="l2"``) has no ``k``. With ``key_heads`` fewer than ``heads``, keys and values are shared
    by groups of heads.

    The arrays are not copied when they are handed over. Every call reads them as they are then, converts them to f64,
    and frees the copy when it is done; an operator that :meth:`jacobian` returned keeps its copy as long as it lives.

    >>> import numpy as np, lipscope
    >>> rng = np.random.default_rng(0)
    >>> q, k, v, o = (0.1 * rng.standard_normal((16, 16)) for _ in range(4))
    >>> layer = lipscope.Attention(q=q, k=k, v=v, o=o, heads=2, mask="causal")
    >>> layer(rng.standard_normal((5, 16))).shape
    (5, 16)
    """

    def __init__(
        self,
        *,
        q: Any,
        k: Any = None,
        v: Any,
        o: Any = None,
        q_bias: Any = None,
        k_bias: Any = None,
        v_bias: Any = None,
        o_bias: Any = None,
        heads: int = 1,
        key_heads: int | None = None,
        kind: str = "dot",
        mask: str = "none",
        window: int | None = None,
        padding: tuple[int, int] = (0, 0),
        tau: float = 10.0,
        nu: float = 1.0,
        epsilon: float = 1e-6,
    ) -> None:
        if kind not in _KINDS:
            raise ValueError(f"kind: expected one of {', '.join(_KINDS)}, got {kind!r}")
        if mask not in ("none", "causal"):
            raise ValueError(f"mask: expected none or causal, got {mask!r}")
        self._arrays = {
            name: plain(array)
            for name, array in zip(
                (*_MATRICES, "q_bias", "k_bias", "v_bias", "o_bias"), (q, k, v, o, q_bias, k_bias, v_bias, o_bias)
            )
            if array is not None
        }
        self.heads = heads
        self.key_heads = heads if key_heads is None else key_heads
        self.kind = kind
        self.mask = mask
        self.window = None if window is None else window_of(window)
        self.padding = both_ends(padding)
        self.tau, self.nu, self.epsilon = tau, nu, epsilon
        self._check_shapes()

    def _check_shapes(self) -> None:
        _core.check_arrays(self._arrays)
        for name, number in (("heads", self.heads), ("key_heads", self.key_heads)):
            if not isinstance(number, int) or number < 1:
                raise ValueError(f"{name}: expected a positive whole number, got {number!r}")
        if self.heads % self.key_heads:
            raise ValueError(f"key_heads: {self.key_heads} does not divide heads {self.heads}")
        tied = self.kind == "l2"
        if tied and "k" in self._arrays:
            raise ValueError("k: tied L2 attention has no keys of its own; kind l2-untied has")
        if not tied and "k" not in self._arrays:
            raise ValueError(f"k: kind {self.kind} needs keys")

        shape = {name: tuple(int(s) for s in array.shape) for name, array in self._arrays.items()}
        for name in shape:
            axes = 2 if name in _MATRICES else 1
            if len(shape[name]) != axes:
                raise ValueError(f"{name}: expected {axes} axes, got {len(shape[name])} in shape {list(shape[name])}")
        d, columns = shape["q"]
        if columns % self.heads:
            raise ValueError(f"q: {columns} columns do not divide into {self.heads} heads")
        width = columns // self.heads
        if "k" in shape and shape["k"] != (d, self.key_heads * width):
            raise ValueError(f"k: expected shape {[d, self.key_heads * width]}, got {list(shape['k'])}")
        if shape["v"][0] != d or shape["v"][1] % self.key_heads:
            raise ValueError(
                f"v: expected {d} rows and a multiple of {self.key_heads} columns, got shape {list(shape['v'])}"
            )
        values = self.heads * (shape["v"][1] // self.key_heads)
        if "o" in shape and shape["o"][0] != values:
            raise ValueError(f"o: expected {values} rows, got shape {list(shape['o'])}")
        for name in _MATRICES:
            if f"{name}_bias" not in shape:
                continue
            if name not in shape:
                raise ValueError(f"{name}_bias: there is no {name}")
            if shape[f"{name}_bias"] != shape[name][1:]:
                raise ValueError(f"{name}_bias: expected {shape[name][1]} numbers, got {shape[f'{name}_bias'][0]}")

    @classmethod
    def from_torch(cls, module: Any, *, mask: str = "none") -> Attention:
        """The self-attention of a ``torch.nn.MultiheadAttention``, on its own weights.

        Whether sequences come first (``batch_first``) does not concern the weights. What the module has and this
        class has not is refused by name: keys and values of other widths (``kdim``, ``vdim``), ``add_bias_kv``,
        ``add_zero_attn``, and dropout while the module is training.
        """
        if not getattr(module, "_qkv_same_embed_dim", True) or module.in_proj_weight is None:
            raise ValueError(
                f"module: kdim {module.kdim} and vdim {module.vdim} differ from embed_dim {module.embed_dim}; "
                "self-attention has one width"
            )
        if module.bias_k is not None or module.bias_v is not None:
            raise ValueError("module: add_bias_kv adds a token that is no input; it is not supported")
        if module.add_zero_attn:
            raise ValueError("module: add_zero_attn adds a token that is no input; it is not supported")
        if module.training and module.dropout > 0:
            raise ValueError(f"module: dropout {module.dropout} is on; call module.eval() first")
        d = module.embed_dim
        # y = x W^T + b there, y = x W + b here
        q, k, v = (module.in_proj_weight.detach()[i * d : (i + 1) * d].T for i in range(3))
        biases = {}
        if module.in_proj_bias is not None:
            for i, name in enumerate(("q_bias", "k_bias", "v_bias")):
                biases[name] = module.in_proj_bias.detach()[i * d : (i + 1) * d]
        if module.out_proj.bias is not None:
            biases["o_bias"] = module.out_proj.bias.detach()
        return cls(q=q, k=k, v=v, o=module.out_proj.weight.detach().T, heads=module.num_heads, mask=mask, **biases)

    def replace(self, **changes: Any) -> Attention:
        """The same layer with other arguments: ``layer.replace(mask="causal")``."""
        own = {name: getattr(self, name) for name in ("heads", "key_heads", "kind", "mask", "window", "padding", "tau", "nu", "epsilon")}
        return Attention(**{**self._arrays, **own, **changes})

    def arrays(self) -> dict[str, Any]:
        """The arrays by name, ``q``, ``k``, ``v``, ``o`` and ``q_bias`` …, those that there are, not copied."""
        return dict(self._arrays)

    @property
    def features(self) -> int:
        """The number d of features of a token."""
        return int(self._arrays["q"].shape[0])

    def __repr__(self) -> str:
        more = "" if self.window is None else f", window={self.window}"
        more += "" if self.padding == (0, 0) else f", padding={self.padding}"
        return f"Attention(d={self.features}, heads={self.heads}, kind={self.kind!r}, mask={self.mask!r}{more})"

    def weights(self) -> _core.Layer:
        """The weights as they are now, copied in f64 for the core."""
        return _core.layer(self._arrays, self.heads, self.key_heads, self.kind)

    def _map(self) -> _core.Map:
        mask = (self.mask, self.window or 0, *self.padding)
        return _core.map(self.weights(), self.kind, mask, self.tau, self.nu, self.epsilon)

    def __call__(self, x: Any) -> npt.NDArray[np.float64]:
        """What the layer makes of the tokens x, [n, d], in f64."""
        return self._map()(plain(x))

    def jacobian(self, x: Any) -> scipy.sparse.linalg.LinearOperator:
        """The Jacobian at the tokens x, [n, d], as a SciPy operator on flattened sequences, in f64."""
        import numpy as np
        from scipy.sparse.linalg import LinearOperator

        j = _core.jacobian(self._map(), plain(x))
        return LinearOperator((j.rows, j.cols), matvec=j.apply, rmatvec=j.apply_adjoint, dtype=np.dtype(np.float64))

    def check(
        self,
        max_lipschitz: float,
        *,
        radius: float | str | None = None,
        length: int | None = None,
        norm: str = "2",
        budget: float = 10.0,
        seed: int = 0,
        threads: int = 0,
    ) -> Record:
        """Pass if the Lipschitz constant is proved to be at most ``max_lipschitz``, and raise otherwise.

        Over which inputs: sequences of ``length`` tokens (128) that are no longer than ``radius`` (any). What is
        returned is the record of the bound that proves it. :class:`lipscope.CheckFailed` has the record of an input at
        which the layer reacts more strongly, found within ``budget`` seconds; or, where no such input was found and
        nothing is proved either, the record of the best bound.
        """
        from lipscope.commands import bound, search

        proved = _best(bound(self, length=length, radius=radius, norm=norm, seed=seed, threads=threads, progress=False))
        if proved is not None and proved.upper is not None and proved.upper <= max_lipschitz:
            return proved
        where = f"n = {length or 128}, " + ("any radius" if radius is None else f"radius {radius}")
        if radius is None and proved is None:
            raise CheckFailed(f"kind {self.kind} has no Lipschitz constant over all inputs; give radius", None)
        found = search(
            self, length=length, radius=radius, norm=norm, budget=budget, seed=seed, threads=threads, progress=False
        )
        above = "nothing" if proved is None else f"{proved.upper:.6g} ({proved.upper_by})" if proved.upper else "10^" + (
            f"{proved.upper_log10:.1f} ({proved.upper_by})"
        )
        assert isinstance(found, Record)  # one length, all heads
        if found.lower is not None and found.lower > max_lipschitz:
            raise CheckFailed(
                f"the constant is at least {found.lower:.6g}, above {max_lipschitz:g} ({where}): see record.x and "
                "record.direction",
                found,
            )
        raise CheckFailed(
            f"not decided: at least {found.lower:.6g} was found and at most {above} is proved; {max_lipschitz:g} was "
            f"asked ({where})",
            proved,
        )


def _best(bounds: Records) -> Record | None:
    """The least bound."""
    known = [b for b in bounds if b.to_dict().get("upper_log10") is not None or b.to_dict().get("upper") is not None]
    return min(known, key=_height) if known else None


def _height(bound: Record) -> float:
    return float("inf") if bound.upper is None else float(bound.upper)

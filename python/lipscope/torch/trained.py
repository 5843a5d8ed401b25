"""Models of `lipscope train` as torch modules, and back: TrainedModel."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from lipscope.errors import InputError
from lipscope.torch.arithmetic import ABOVE
from lipscope.torch.bound import Constant, Inputs, composed, constant_of, linear_constant
from lipscope.torch.self_attention import ContractiveL2SelfAttention, L2SelfAttention
from lipscope.torch.tensor_file import read_tensors, write_tensors, write_whole
from lipscope.torch.trained_heads import ComparingHeads, HeadsApart, Places, PositionHeads

_MIXERS = ("dot", "l2", "l2-untied", "contractive-l2", "position")
_NORMS = ("post", "pre", "none")
_POSITIONS = ("table", "rotary", "relative", "none")
_RESIDUALS = ("add", "convex", "none")
_DIVISIONS = ("layer", "coordinate")


class MaxMin(nn.Module):
    """Of m features, j and j + m/2 become the larger and the smaller of the two [Anil19]: 1-Lipschitz in every norm."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a, b = x.chunk(2, -1)
        return torch.cat([torch.maximum(a, b), torch.minimum(a, b)], -1)

    def constant(self, over: Inputs) -> Constant:
        """What :func:`lipscope.torch.lipschitz_bound` asks for."""
        return Constant(over.arithmetic.number(1.0), over.radius, "activation")


# the activation, and the largest absolute value of its derivative, from above
_ACTIVATIONS: dict[str, tuple[Callable[[], nn.Module], float]] = {
    "gelu": (nn.GELU, 1.1290),
    "gelu_new": (lambda: nn.GELU(approximate="tanh"), 1.1290),
    "relu": (nn.ReLU, 1.0),
    "silu": (nn.SiLU, 1.0999),
    "max_min": (MaxMin, 1.0),
}
_TOGETHER = 32  # windows of a text that are read at once


class TrainedModel(nn.Module):
    """A character-level language model, as `lipscope train` makes it.

    Characters, and their positions where there is a table of them, are embedded; then come blocks of attention and an
    MLP, each joined with what it reads (`residual` "add", "convex" or "none") and with its norm (`norm` "post", "pre"
    or "none"); then a matrix to the logits of the next character. The attention of block i is `blocks[i].attention`: an
    nn.MultiheadAttention (mixer "dot"), an L2SelfAttention ("l2") or a ContractiveL2SelfAttention ("contractive-l2");
    a ComparingHeads where it has rotary or relative positions, is divided by coordinate or is "l2-untied"; a HeadsApart
    where heads write coordinates of their own. There is no dropout: it belongs to a training, not to the model.

    `TrainedModel.load(folder)` reads what `lipscope train` wrote, and `save(folder)` writes a folder that
    `lipscope eval`, `sample`, `measure` and the other commands read. Both have the same losses, up to the rounding
    of f32. The mixer "lstm" is refused.
    """

    def __init__(self, config: Mapping[str, Any], *, where: str = "config") -> None:
        super().__init__()
        self.config = dict(config)
        shape = _Shape(config, where)
        self.norm, self.context = shape.norm, shape.context
        characters = config.get("characters")
        if not isinstance(characters, list) or len(characters) < 2 or not all(isinstance(c, int) for c in characters):
            raise InputError(f"{where}: characters: expected a list of at least two code points")
        self.characters = "".join(chr(c) for c in characters)
        self._number = {c: i for i, c in enumerate(self.characters)}

        self.character_embedding = nn.Embedding(len(characters), shape.width)
        table = shape.positions == "table"
        self.position_embedding = nn.Embedding(self.context, shape.width) if table else None
        self.blocks = nn.ModuleList(TrainedBlock(shape) for _ in range(shape.layers))
        self.last_norm = nn.LayerNorm(shape.width, eps=1e-5) if self.norm == "pre" else nn.Identity()
        self.head = nn.Linear(shape.width, len(characters), bias=shape.head_bias)

    def forward(self, characters: torch.Tensor) -> torch.Tensor:
        """The logits of what follows each character: numbers [batch, n], n up to the context → [batch, n, V]."""
        if characters.dim() != 2 or characters.shape[1] > self.context:
            shape = list(characters.shape)
            raise InputError(f"characters: shape {shape}; expected [batch, n], n at most {self.context}")
        x = self.embedded(characters)
        for block in self.blocks:
            x = block(x)
        logits: torch.Tensor = self.head(self.last_norm(x))
        return logits

    def embedded(self, characters: torch.Tensor) -> torch.Tensor:
        """What the first block reads of the characters."""
        tokens: torch.Tensor = self.character_embedding(characters)
        if self.position_embedding is not None:
            tokens = tokens + self.position_embedding(torch.arange(characters.shape[1], device=characters.device))
        return tokens

    def constant(self, over: Inputs) -> Constant:
        """What :func:`lipscope.torch.lipschitz_bound` asks for: from the embedded characters to the logits."""
        blocks = [(f"blocks.{i}", block) for i, block in enumerate(self.blocks)]
        return composed(over, *blocks, ("last_norm", self.last_norm), ("head", self.head))

    def encode(self, text: str) -> torch.Tensor:
        """The numbers of the characters of a text."""
        unknown = next((c for c in text if c not in self._number), None)
        if unknown is not None:
            raise InputError(f"text: the model does not know {unknown!r} (at {text.index(unknown)})")
        return torch.tensor([self._number[c] for c in text], dtype=torch.long)

    def decode(self, characters: torch.Tensor) -> str:
        return "".join(self.characters[i] for i in characters.tolist())

    @torch.no_grad()
    def loss(self, text: str) -> float:
        """The mean of -log p(character | those before it in its window), in nats, as `lipscope eval` defines it."""
        numbers = self.encode(text).to(self.head.weight.device)
        if len(numbers) < 2:
            raise InputError(f"text: {len(numbers)} characters; there must be two at least")
        total = 0.0
        for read, follow in _windows(numbers, self.context):
            logits = self(read).double().flatten(0, 1)
            total += float(nn.functional.cross_entropy(logits, follow.flatten(), reduction="sum"))
        return total / (len(numbers) - 1)

    @classmethod
    def load(cls, folder: str | Path) -> TrainedModel:
        """The model of a folder that `lipscope train` or `save` wrote, in f32.

        Raises:
            InputError: With the file and the key, for what is missing or is no such model.
        """
        path = Path(folder) / "config.json"
        try:
            config = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        except ValueError as error:
            raise InputError(f"{path}: no JSON: {error}") from None
        if not isinstance(config, dict):
            raise InputError(f"{path}: expected an object")
        model = cls(config, where=str(path))
        path = Path(folder) / "model.safetensors"
        tensors = read_tensors(path)
        with torch.no_grad():
            for name, place in model._places():
                if name not in tensors:
                    raise InputError(f"{path}: no {name}")
                given = tensors[name].reshape(-1) if place.dim() == 1 else tensors[name]
                if given.shape != place.shape:
                    raise InputError(f"{path}: {name} is {list(given.shape)}; the model has {list(place.shape)} there")
                place.copy_(given)
        return model

    def save(self, folder: str | Path) -> None:
        """Writes config.json and model.safetensors, in f32, in place of those that are there.

        The files of a training (metrics.jsonl, state.json, …) are neither written nor removed: save to a new folder
        what was changed since.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        tensors = {name: place.detach()[None] if place.dim() == 1 else place.detach() for name, place in self._places()}
        write_tensors(folder / "model.safetensors", tensors)
        config = {**self.config, "training": self.config.get("training", {})}
        write_whole(folder / "config.json", (json.dumps(config, indent=2) + "\n").encode())

    def _places(self) -> Places:
        yield "wte.weight", self.character_embedding.weight
        if self.position_embedding is not None:
            yield "wpe.weight", self.position_embedding.weight
        for i, block in enumerate(self.blocks):
            assert isinstance(block, TrainedBlock)
            for name, place in block.places():
                yield f"h.{i}.{name}", place
        yield from _norm_places("ln_f", self.last_norm)
        yield "lm_head.weight", self.head.weight.T
        if self.head.bias is not None:
            yield "lm_head.bias", self.head.bias


class TrainedBlock(nn.Module):
    """Attention and an MLP, each joined with what it reads, and their norms.

    carry·x + share·f(x): x + f(x), (1 − α)x + α f(x), or f(x) alone. With a contraction c, f has a constant of at most
    c in the inf-norm.
    """

    def __init__(self, shape: _Shape) -> None:
        super().__init__()
        self.norm_place = shape.norm
        self.carry, self.share = shape.carry, shape.share
        self.attention = _attention(shape)
        self.mlp = TrainedMlp(shape.width, shape.hidden, shape.activation, shape.contraction)
        self.norm_1, self.norm_2 = (
            nn.Identity() if shape.norm == "none" else nn.LayerNorm(shape.width, eps=1e-5) for _ in range(2)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self._around(x, self.norm_1, self._attend)
        return self._around(x, self.norm_2, self.mlp)

    def _around(self, x: torch.Tensor, norm: nn.Module, f: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        if self.norm_place == "pre":
            return x + f(norm(x))
        y: torch.Tensor = norm(self.carry * x + self.share * f(x))
        return y

    def _attend(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor
        if isinstance(self.attention, (ComparingHeads, HeadsApart)):
            y = self.attention(x)
            return y
        n = x.shape[1]
        later = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
        y = self.attention(x, x, x, attn_mask=later, need_weights=False)[0]
        return y

    def constant(self, over: Inputs) -> Constant:
        """What :func:`lipscope.torch.lipschitz_bound` asks for."""
        over = replace(over, mask="causal")
        first = self._constant_around(over, ("norm_1", self.norm_1), ("attention", self.attention))
        second = self._constant_around(over.after(first), ("norm_2", self.norm_2), ("mlp", self.mlp))
        return replace(second, value=first.value * second.value, by=f"block({first.by}, {second.by})")

    def _constant_around(self, over: Inputs, norm: tuple[str, nn.Module], f: tuple[str, nn.Module]) -> Constant:
        if self.norm_place == "pre":
            return self._joined(over, composed(over, norm, f))
        joined = self._joined(over, composed(over, f))
        normed = composed(over.after(joined), norm)
        return replace(normed, value=joined.value * normed.value, by=joined.by)

    def _joined(self, over: Inputs, f: Constant) -> Constant:
        """carry + share Lip(f), and the same of radii."""
        if self.carry == 0.0:
            return f
        carry = self.carry if self.carry == 1.0 else self.carry * ABOVE
        radius = None
        if over.radius is not None and f.radius is not None:
            radius = over.radius * carry + f.radius * self.share
        return Constant(f.value * self.share + carry, radius, f"residual({f.by})")

    def places(self) -> Places:
        """As TrainedModel._places."""
        attention = self.attention
        if isinstance(attention, (ComparingHeads, HeadsApart)):
            for name, place in attention.places():
                yield f"attn.{name}", place
        elif isinstance(attention, L2SelfAttention):
            yield "attn.q.weight", attention.q_proj_weight.T
            yield "attn.v.weight", attention.v_proj_weight.T
            yield "attn.o.weight", attention.out_proj_weight.T
        else:
            yield "attn.qkv.weight", attention.in_proj_weight.T
            yield "attn.o.weight", attention.out_proj.weight.T
        for name, linear in (("up", self.mlp.up), ("down", self.mlp.down)):
            yield f"mlp.{name}.weight", linear.weight.T
            yield f"mlp.{name}.bias", linear.bias
        yield from _norm_places("ln_1", self.norm_1)
        yield from _norm_places("ln_2", self.norm_2)


def _attention(shape: _Shape) -> nn.MultiheadAttention | L2SelfAttention | ComparingHeads | HeadsApart:
    """What mixes the tokens of a block."""
    width, context = shape.width, shape.context
    by_coordinate = shape.division == "coordinate"
    if shape.heads_apart or by_coordinate or shape.mixer == "l2-untied" or shape.positions in ("rotary", "relative"):
        head_width, comparers = width // shape.heads, shape.heads - shape.position_heads
        comparing = position = None
        if comparers:
            comparing = ComparingHeads(
                "l2" if shape.mixer == "contractive-l2" else shape.mixer, width, comparers, head_width, context,
                positions=shape.positions,
                projects=not shape.heads_apart,
                contraction=(shape.contraction or 1.0) if by_coordinate else None,
            )  # fmt: skip
            if not shape.heads_apart:
                return comparing
        if shape.position_heads:
            position = PositionHeads(width, shape.position_heads, head_width, context)
        return HeadsApart(position, comparing)
    if shape.mixer == "dot":
        return nn.MultiheadAttention(width, shape.heads, bias=False, batch_first=True)
    if shape.mixer == "l2":
        return L2SelfAttention(width, shape.heads)
    return ContractiveL2SelfAttention(width, shape.heads, contraction=shape.contraction or 1.0, length=context)


def _norm_places(name: str, norm: nn.Module) -> Places:
    if isinstance(norm, nn.LayerNorm):
        yield f"{name}.weight", norm.weight
        yield f"{name}.bias", norm.bias


class TrainedMlp(nn.Module):
    """act(x W_up + b_up) W_down + b_down.

    With a contraction c, W_down is multiplied by c/(‖W_upᵀ‖_inf L ‖W_downᵀ‖_inf), L the largest slope of the
    activation, so that the MLP has a constant of at most c in the inf-norm.
    """

    def __init__(self, width: int, hidden: int, activation: str, contraction: float | None) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)
        make, self.slope = _ACTIVATIONS[activation]
        self.activation = make()
        self.contraction = contraction

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(self.activation(self.up(x)), self._down_weight(), self.down.bias)

    def _down_weight(self) -> torch.Tensor:
        if self.contraction is None:
            return self.down.weight
        # rows of Linear.weight are columns of W: ‖Wᵀ‖_inf is the largest sum over one of them
        up, down = (w.abs().sum(1).max() for w in (self.up.weight, self.down.weight))
        scaled: torch.Tensor = self.down.weight * (self.contraction / (up * self.slope * down))
        return scaled

    def constant(self, over: Inputs) -> Constant:
        """What :func:`lipscope.torch.lipschitz_bound` asks for."""
        inner = composed(over, ("up", self.up), ("activation", self.activation))
        if self.contraction is None:
            outer = constant_of(self.down, over.after(inner).inside("down"))
        else:
            outer = linear_constant(self._down_weight(), self.down.bias, over.after(inner))
        return replace(outer, value=inner.value * outer.value, by="mlp")


def _windows(numbers: torch.Tensor, context: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """The text in windows of at most `context`: every character but the first is predicted once."""
    last = len(numbers) - 1
    whole = last // context
    if whole:
        read, follow = (numbers[i : i + whole * context].view(whole, context) for i in (0, 1))
        for begin in range(0, whole, _TOGETHER):
            yield read[begin : begin + _TOGETHER], follow[begin : begin + _TOGETHER]
    if last % context:
        yield numbers[None, whole * context : last], numbers[None, whole * context + 1 :]


class _Shape:
    """What a config.json says of the model, as in model/language_model_config.h; InputError with where it is from."""

    def __init__(self, config: Mapping[str, Any], where: str) -> None:
        self._config, self._where = config, where
        self._one_of("model_type", ("lipscope",))
        self.mixer = self._one_of("mixer", _MIXERS)
        self.norm = self._one_of("norm", _NORMS)
        self.width, self.heads = self._count("width"), self._count("num_heads")
        if self.width % self.heads:
            raise self._refusal(f"width {self.width} does not divide into num_heads {self.heads}")
        self.context, self.layers, self.hidden = (self._count(key) for key in ("context", "num_layers", "mlp_width"))
        self.activation = self._one_of("activation", tuple(_ACTIVATIONS))
        if self.activation == "max_min" and self.hidden % 2:
            raise self._refusal(f"mlp_width: {self.hidden}; max_min takes pairs")
        # folders from before these keys were there do not have them
        self.head_bias, self.heads_apart = self._flag("head_bias"), self._flag("heads_apart")
        self.position_heads = self._count("position_heads", 0) if "position_heads" in config else 0
        self.positions = self._one_of("positions", _POSITIONS) if "positions" in config else "table"
        self.division = self._one_of("division", _DIVISIONS) if "division" in config else "layer"
        self.carry, self.share = self._join()
        self.contraction = self._contraction()
        self._check_heads()

    def _join(self) -> tuple[float, float]:
        residual = self._one_of("residual", _RESIDUALS) if "residual" in self._config else "add"
        if residual != "add" and self.norm != "none":
            raise self._refusal(f"residual: {residual!r} with norm {self.norm}; with norms it is add")
        if residual == "convex":
            share = self._config.get("residual_share")
            if not isinstance(share, float) or not 0.0 < share < 1.0:
                raise self._refusal(f"residual_share: {share!r} is not between 0 and 1")
            return 1.0 - share, share
        return (1.0, 1.0) if residual == "add" else (0.0, 1.0)

    def _contraction(self) -> float | None:
        contraction = self._config.get("contraction")
        if contraction is None:
            return None
        if self.mixer != "contractive-l2" or self.norm != "none":
            raise self._refusal(
                f"contraction: with {self.mixer} and norm {self.norm}; expected contractive-l2 without norms"
            )
        if not (isinstance(contraction, float) and 0.0 < contraction < 1.0):
            raise self._refusal(f"contraction: {contraction!r} is not between 0 and 1")
        return contraction

    def _check_heads(self) -> None:
        mixer, positions = self.mixer, self.positions
        if self.position_heads > self.heads or (self.position_heads == self.heads) != (mixer == "position"):
            expected = "all" if mixer == "position" else "fewer"
            given = f"{self.position_heads} of {self.heads}"
            raise self._refusal(f"position_heads: {given} with {mixer}; expected {expected}")
        if self.position_heads and not self.heads_apart:
            raise self._refusal(f"position_heads: {self.position_heads} that do not stand apart (heads_apart)")
        if self.heads_apart and mixer == "contractive-l2":
            raise self._refusal("heads_apart: with contractive-l2, whose divisor is made of its output matrix")
        if self.division == "coordinate" and mixer != "contractive-l2":
            raise self._refusal(f"division: coordinate with {mixer}; expected contractive-l2")
        if positions == "rotary" and (mixer != "dot" or self.width // self.heads % 2):
            raise self._refusal(f"positions: rotary with {mixer}; expected dot with heads of even width")
        divided = mixer == "contractive-l2" and self.division == "layer"
        if positions == "relative" and (mixer == "position" or divided):
            raise self._refusal(
                f"positions: relative with {mixer}; expected dot, l2, l2-untied or, divided by coordinate, contractive-l2"
            )

    def _refusal(self, why: str) -> InputError:
        return InputError(f"{self._where}: {why}")

    def _one_of(self, key: str, allowed: tuple[str, ...]) -> str:
        value = self._config.get(key)
        if value not in allowed:
            raise self._refusal(f"{key}: {value!r}; expected {', '.join(allowed)}")
        return str(value)

    def _flag(self, key: str) -> bool:
        value = self._config.get(key, False)
        if not isinstance(value, bool):
            raise self._refusal(f"{key}: {value!r}; expected true or false")
        return value

    def _count(self, key: str, least: int = 1) -> int:
        value = self._config.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            expected = "a positive whole number" if least else "a whole number, 0 or more"
            raise self._refusal(f"{key}: {value!r}; expected {expected}")
        return value

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
from lipscope.torch.bound import Constant, Inputs, composed, constant_of, linear_constant, residual
from lipscope.torch.self_attention import ContractiveL2SelfAttention, L2SelfAttention
from lipscope.torch.tensor_file import read_tensors, write_tensors, write_whole

# what a config.json may say besides; folders from before these keys were there do not have them
_PLAIN = {"position_heads": 0, "heads_apart": False, "positions": "table", "residual": "add", "head_bias": False,
          "division": "layer"}
_MIXERS = ("dot", "l2", "contractive-l2")
_NORMS = ("post", "pre", "none")
# the activation, and the largest absolute value of its derivative, from above
_ACTIVATIONS: dict[str, tuple[Callable[[], nn.Module], float]] = {
    "gelu": (nn.GELU, 1.1290),
    "gelu_new": (lambda: nn.GELU(approximate="tanh"), 1.1290),
    "relu": (nn.ReLU, 1.0),
    "silu": (nn.SiLU, 1.0999),
}
_TOGETHER = 32  # windows of a text that are read at once


class TrainedModel(nn.Module):
    """A character-level language model, as `lipscope train` makes it.

    Characters and their positions are embedded; then come blocks of attention and an MLP, each with its residual
    connection and its norm (`norm` "post", "pre" or "none"); then a matrix to the logits of the next character.
    The attention of block i is `blocks[i].attention`: an nn.MultiheadAttention (mixer "dot"), an L2SelfAttention
    ("l2") or a ContractiveL2SelfAttention ("contractive-l2"). There is no dropout: it belongs to a training, not to
    the model.

    `TrainedModel.load(folder)` reads what `lipscope train` wrote, and `save(folder)` writes a folder that
    `lipscope eval`, `sample`, `measure` and the other commands read. Both have the same losses, up to the rounding
    of f32. The mixers "l2-untied", "position" and "lstm" are refused, and so are heads that stand apart, other positions than
    a table, other residuals than x + f(x), a head with a bias, and contractive-l2 that is divided by coordinate.
    """

    def __init__(self, config: Mapping[str, Any], *, where: str = "config") -> None:
        super().__init__()
        self.config = dict(config)
        read = _Reader(config, where)
        read.one_of("model_type", ("lipscope",))
        mixer = read.one_of("mixer", _MIXERS)
        self.norm = read.one_of("norm", _NORMS)
        width, heads = read.count("width"), read.count("num_heads")
        if width % heads:
            raise InputError(f"{where}: width {width} does not divide into num_heads {heads}")
        self.context = read.count("context")
        for key, plain in _PLAIN.items():
            if config.get(key, plain) != plain:
                raise InputError(f"{where}: {key} is {config[key]!r}; a torch module is made of models with {plain!r} alone")
        contraction = config.get("contraction")
        if contraction is not None and (mixer != "contractive-l2" or self.norm != "none"):
            raise InputError(
                f"{where}: contraction: with {mixer} and norm {self.norm}; expected contractive-l2 without norms"
            )
        if contraction is not None and not (isinstance(contraction, float) and 0.0 < contraction < 1.0):
            raise InputError(f"{where}: contraction: {contraction!r} is not between 0 and 1")
        characters = config.get("characters")
        if not isinstance(characters, list) or len(characters) < 2 or not all(isinstance(c, int) for c in characters):
            raise InputError(f"{where}: characters: expected a list of at least two code points")
        self.characters = "".join(chr(c) for c in characters)
        self._number = {c: i for i, c in enumerate(self.characters)}

        self.character_embedding = nn.Embedding(len(characters), width)
        self.position_embedding = nn.Embedding(self.context, width)
        self.blocks = nn.ModuleList(
            TrainedBlock(
                mixer=mixer,
                width=width,
                heads=heads,
                context=self.context,
                hidden=read.count("mlp_width"),
                activation=read.one_of("activation", tuple(_ACTIVATIONS)),
                norm=self.norm,
                contraction=contraction,
            )
            for _ in range(read.count("num_layers"))
        )
        self.last_norm = nn.LayerNorm(width, eps=1e-5) if self.norm == "pre" else nn.Identity()
        self.head = nn.Linear(width, len(characters), bias=False)

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
        places = torch.arange(characters.shape[1], device=characters.device)
        tokens: torch.Tensor = self.character_embedding(characters) + self.position_embedding(places)
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

    def _places(self) -> Iterator[tuple[str, torch.Tensor]]:
        """The names of the tensors in the folder, where weights act from the right, with views of the parameters."""
        yield "wte.weight", self.character_embedding.weight
        yield "wpe.weight", self.position_embedding.weight
        for i, block in enumerate(self.blocks):
            assert isinstance(block, TrainedBlock)
            for name, place in block.places():
                yield f"h.{i}.{name}", place
        yield from _norm_places("ln_f", self.last_norm)
        yield "lm_head.weight", self.head.weight.T


class TrainedBlock(nn.Module):
    """Residual attention and a residual MLP with their norms; with a contraction c, x + c·f(x) without norms."""

    def __init__(
        self,
        *,
        mixer: str,
        width: int,
        heads: int,
        context: int,
        hidden: int,
        activation: str,
        norm: str,
        contraction: float | None,
    ) -> None:
        super().__init__()
        self.norm_place = norm
        self.attention: nn.MultiheadAttention | L2SelfAttention
        if mixer == "dot":
            self.attention = nn.MultiheadAttention(width, heads, bias=False, batch_first=True)
        elif mixer == "l2":
            self.attention = L2SelfAttention(width, heads)
        else:
            scale = 1.0 if contraction is None else contraction
            self.attention = ContractiveL2SelfAttention(width, heads, contraction=scale, length=context)
        self.mlp = TrainedMlp(width, hidden, activation, contraction)
        self.norm_1, self.norm_2 = (
            nn.Identity() if norm == "none" else nn.LayerNorm(width, eps=1e-5) for _ in range(2)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self._around(x, self.norm_1, self._attend)
        return self._around(x, self.norm_2, self.mlp)

    def _around(self, x: torch.Tensor, norm: nn.Module, f: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        if self.norm_place == "pre":
            return x + f(norm(x))
        y: torch.Tensor = norm(x + f(x))
        return y

    def _attend(self, x: torch.Tensor) -> torch.Tensor:
        n = x.shape[1]
        later = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
        y: torch.Tensor = self.attention(x, x, x, attn_mask=later, need_weights=False)[0]
        return y

    def constant(self, over: Inputs) -> Constant:
        """What :func:`lipscope.torch.lipschitz_bound` asks for."""
        over = replace(over, mask="causal")
        first = self._constant_around(over, ("norm_1", self.norm_1), ("attention", self.attention))
        second = self._constant_around(over.after(first), ("norm_2", self.norm_2), ("mlp", self.mlp))
        return replace(second, value=first.value * second.value, by=f"block({first.by}, {second.by})")

    def _constant_around(self, over: Inputs, norm: tuple[str, nn.Module], f: tuple[str, nn.Module]) -> Constant:
        if self.norm_place == "pre":
            return residual(over, composed(over, norm, f))
        summed = residual(over, composed(over, f))
        normed = composed(over.after(summed), norm)
        return replace(normed, value=summed.value * normed.value, by=summed.by)

    def places(self) -> Iterator[tuple[str, torch.Tensor]]:
        """As TrainedModel._places."""
        if not isinstance(self.attention, L2SelfAttention):
            yield "attn.qkv.weight", self.attention.in_proj_weight.T
            yield "attn.o.weight", self.attention.out_proj.weight.T
        else:
            yield "attn.q.weight", self.attention.q_proj_weight.T
            yield "attn.v.weight", self.attention.v_proj_weight.T
            yield "attn.o.weight", self.attention.out_proj_weight.T
        for name, linear in (("up", self.mlp.up), ("down", self.mlp.down)):
            yield f"mlp.{name}.weight", linear.weight.T
            yield f"mlp.{name}.bias", linear.bias
        yield from _norm_places("ln_1", self.norm_1)
        yield from _norm_places("ln_2", self.norm_2)


def _norm_places(name: str, norm: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
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


class _Reader:
    """A config, with messages that begin with where it is from."""

    def __init__(self, config: Mapping[str, Any], where: str) -> None:
        self._config, self._where = config, where

    def one_of(self, key: str, allowed: tuple[str, ...]) -> str:
        value = self._config.get(key)
        if value not in allowed:
            raise InputError(f"{self._where}: {key}: {value!r}; expected {', '.join(allowed)}")
        return str(value)

    def count(self, key: str) -> int:
        value = self._config.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise InputError(f"{self._where}: {key}: {value!r}; expected a positive whole number")
        return value

"""lipscope.torch.audit on models of transformers: dense Jacobians by autograd, and lipscope's own kernels."""

import copy
import json
import os
import subprocess
import sys
import textwrap

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import lipscope  # noqa: E402
import lipscope.torch as lt  # noqa: E402

SMALL = dict(
    vocab_size=40,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=24,
    max_position_embeddings=32,
    initializer_range=0.3,
    bos_token_id=0,
    eos_token_id=1,
    pad_token_id=2,
)
GROUPED = dict(SMALL, num_key_value_heads=2)
IDS = torch.tensor([5, 7, 2, 9, 30, 11])
N = len(IDS)


def make(name):
    torch.manual_seed(0)
    t = transformers
    model = {
        "bert": lambda: t.BertModel(t.BertConfig(**SMALL)),
        "gpt2": lambda: t.GPT2LMHeadModel(
            t.GPT2Config(vocab_size=40, n_embd=16, n_layer=2, n_head=4, n_positions=32, initializer_range=0.3, bos_token_id=0, eos_token_id=1)
        ),
        "llama": lambda: t.LlamaForCausalLM(t.LlamaConfig(**GROUPED)),
        "mistral": lambda: t.MistralForCausalLM(t.MistralConfig(**GROUPED, sliding_window=3)),
        "qwen3": lambda: t.Qwen3ForCausalLM(t.Qwen3Config(**GROUPED, head_dim=4)),
        "distilbert": lambda: t.DistilBertModel(
            t.DistilBertConfig(vocab_size=40, dim=16, n_layers=2, n_heads=4, hidden_dim=24, max_position_embeddings=32, initializer_range=0.3)
        ),
        "vit": lambda: t.ViTForImageClassification(
            t.ViTConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=24, image_size=8, patch_size=4, initializer_range=0.3)
        ),
        "gemma2": lambda: t.Gemma2ForCausalLM(t.Gemma2Config(**GROUPED, head_dim=4)),
        "mixtral": lambda: t.MixtralForCausalLM(t.MixtralConfig(**GROUPED, num_local_experts=3)),
    }[name]()
    with torch.no_grad():  # transformers begins with biases 0 and gains 1, which hide mistakes
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.2)
    return model.eval()


def dense_norm(f, x):
    jacobian = torch.autograd.functional.jacobian(f, x).reshape(-1, x.numel())
    return float(torch.linalg.svdvals(jacobian.double())[0])


# ---- dense Jacobians


def causal_mask(window=N):
    i, j = torch.arange(N)[:, None], torch.arange(N)[None]
    hidden = (j > i) | (j <= i - window)
    return torch.zeros(N, N, dtype=torch.float64).masked_fill(hidden, -1e30)[None, None]


class Parts:
    """A model in f64, taken apart by hand: its layers, their attention, norms, and what follows."""

    def __init__(self, name):
        self.model = copy.deepcopy(make(name)).double()
        self.model.set_attn_implementation("eager")
        if name == "mixtral":
            self.model.set_experts_implementation("eager")
        self.behind = lambda layer: torch.nn.Identity()
        inner = self.model.base_model
        if name == "vit":
            self.layers, self.final = list(inner.layers), inner.layernorm
            self.norm = lambda layer: layer.layernorm_before
            self.attention = lambda layer, x: layer.attention(x)[0]
            self.projection = lambda layer: layer.attention.o_proj
            self.block = lambda layer, x: layer(x)
        elif name == "distilbert":
            self.layers, self.final = list(inner.transformer.layer), None
            self.norm = None
            self.post = lambda layer: layer.sa_layer_norm
            self.attention = lambda layer, x: layer.attention(x, attention_mask=None)[0]
            self.projection = lambda layer: layer.attention.out_lin
            self.block = lambda layer, x: layer(x)
        else:
            self.layers, self.final = list(inner.layers), inner.norm
            mask = causal_mask(3 if name == "mistral" else N)
            at = torch.arange(N)[None]
            positions = inner.rotary_emb(torch.zeros(1, 1, 1, dtype=torch.float64), at)
            more = {"attention_mask": mask, "position_embeddings": positions}
            self.norm = lambda layer: layer.input_layernorm
            self.attention = lambda layer, x: layer.self_attn(hidden_states=x, **more)[0]
            if name == "gemma2":  # a norm behind the attention as well
                self.behind = lambda layer: layer.post_attention_layernorm
            self.projection = lambda layer: layer.self_attn.o_proj
            self.block = lambda layer, x: layer(x, position_ids=at, **more)
        first = lambda y: y[0] if isinstance(y, tuple) else y
        block = self.block
        self.block = lambda layer, x: first(block(layer, x))

    def residual(self, layer, x):
        if self.norm is None:
            return self.post(layer)(x + self.attention(layer, x))
        return x + self.behind(layer)(self.attention(layer, self.norm(layer)(x)))

    def whole(self, x):
        for layer in self.layers:
            x = self.block(layer, x)
        return x if self.final is None else self.final(x)

    def one_head(self, layer, head, x):
        projection = self.projection(layer)
        whole = projection.weight.detach().clone()
        width = whole.shape[1] // 4
        with torch.no_grad():
            kept = whole[:, head * width : (head + 1) * width].clone()
            projection.weight.zero_()
            projection.weight[:, head * width : (head + 1) * width] = kept
        value = dense_norm(lambda t: self.attention(layer, t), x)
        with torch.no_grad():
            projection.weight.copy_(whole)
        return value


@pytest.mark.parametrize("name", ["vit", "mistral", "qwen3", "distilbert", "gemma2", "mixtral"])
def test_values_are_those_of_dense_jacobians(name):
    model, parts = make(name), Parts(name)
    image = torch.randn(1, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    given = {"inputs": {"pixel_values": image}} if name == "vit" else {"input_ids": IDS}
    call = {"pixel_values": image.double()} if name == "vit" else {"input_ids": IDS[None]}
    hidden = parts.model.base_model(**call, output_hidden_states=True).hidden_states
    found = lt.audit(model, maps=("attn", "residual", "block", "model"), heads="all", dtype="f64", **given)
    heads = lt.audit(model, maps="attn", heads="each", dtype="f64", **given)
    got = {(r.map, r.layer, r.head): r.lower for r in [*found, *heads]}
    expected = {("model", None, "all"): dense_norm(parts.whole, hidden[0].detach())}
    for i, layer in enumerate(parts.layers):
        x = hidden[i].detach()
        inner = x if parts.norm is None else parts.norm(layer)(x).detach()
        expected["attn", i, "all"] = dense_norm(lambda t: parts.attention(layer, t), inner)
        expected["residual", i, "all"] = dense_norm(lambda t: parts.residual(layer, t), x)
        expected["block", i, "all"] = dense_norm(lambda t: parts.block(layer, t), x)
        for head in range(4):
            expected["attn", i, head] = parts.one_head(layer, head, inner)
    assert got.keys() == expected.keys() and len(got) == 15
    for key, value in expected.items():
        assert got[key] == pytest.approx(value, rel=1e-5), key


def test_layers_without_a_sub_layer_of_attention_say_so():
    t = transformers
    torch.manual_seed(0)
    config = t.CohereConfig(vocab_size=40, hidden_size=16, num_hidden_layers=1, num_attention_heads=4,
                            intermediate_size=24, pad_token_id=0, bos_token_id=1, eos_token_id=2)
    model = t.CohereModel(config).eval()
    with pytest.raises(lipscope.InputError, match="CohereDecoderLayer runs mlp.gate_proj beside its attention"):
        lt.audit(model, input_ids=IDS, maps="residual")
    assert len(lt.audit(model, input_ids=IDS, maps=("attn", "block", "model"), heads="each")) == 6


def test_layers_that_share_their_weights_are_layers_of_their_own():
    t = transformers
    torch.manual_seed(0)
    model = t.AlbertModel(t.AlbertConfig(**SMALL, embedding_size=8)).eval()
    found = lt.audit(model, input_ids=IDS, maps="block")
    assert [r.layer for r in found] == [0, 1] and found[0].lower != found[1].lower


def test_implementations_of_the_model_are_what_they_were():
    model = make("mixtral")
    before = model.config._attn_implementation, model.config._experts_implementation
    lt.audit(model, input_ids=IDS, maps="block")
    assert (model.config._attn_implementation, model.config._experts_implementation) == before


# ---- lipscope's own kernels


def by_the_program(folder, map_name, dtype, heads):
    """What the program says of the same weights in a folder."""
    ids = folder / "ids.txt"
    ids.write_text(" ".join(str(i) for i in IDS.tolist()))
    command = [os.environ["LIPSCOPE_PROGRAM"], "measure", folder, "--ids", ids, "--lengths", N, "--samples", 1]
    command += ["--map", map_name, "--heads", heads, "--dtype", dtype, "--certificate", "none", "--json", "--quiet"]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=True)
    records = [json.loads(line) for line in done.stdout.splitlines()]
    return {(r["layer"], r["head"]): r["lower"] for r in records if r["command"] == "measure"}


@pytest.mark.skipif("LIPSCOPE_PROGRAM" not in os.environ, reason="LIPSCOPE_PROGRAM names no program")
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", ["bert", "gpt2", "llama"])
def test_autograd_agrees_with_the_kernels(name, dtype, tmp_path):
    model = make(name)
    model.save_pretrained(tmp_path)
    if dtype == "f64":
        model = model.double()
    for map_name in ("core", "attn", "residual", "block", "model"):
        for heads in ("all", "each") if map_name in ("core", "attn") else ("all",):
            expected = by_the_program(tmp_path, map_name, dtype, heads)
            found = lt.audit(model, input_ids=IDS, maps=map_name, heads=heads, dtype=dtype, kernels="autograd")
            got = {(r.layer, r.head): r.lower for r in found}
            assert got.keys() == expected.keys()
            for key, value in expected.items():
                # an input from a pass in f32 differs by its rounding
                assert got[key] == pytest.approx(value, rel=1e-5 if dtype == "f32" else 1e-6), (map_name, key)


@pytest.mark.skipif("LIPSCOPE_PROGRAM" not in os.environ, reason="LIPSCOPE_PROGRAM names no program")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=["f32", "bf16", "f16"])
@pytest.mark.parametrize("name", ["bert", "gpt2", "llama"])
def test_models_in_memory_have_the_programs_numbers(name, dtype, tmp_path):
    model = make(name).to(dtype)
    model.save_pretrained(tmp_path)
    for map_name, heads in (("attn", "each"), ("block", "all")):
        expected = by_the_program(tmp_path, map_name, "f32", heads)
        found = lt.audit(model, input_ids=IDS, maps=map_name, heads=heads)
        assert {r.parameters["operator"] for r in found} == {"lipscope"}
        assert {(r.layer, r.head): r.lower for r in found} == expected


def test_weights_are_read_where_they_lie():
    """A table of words of 400 MB, of which the measurement reads six rows."""
    program = """
        import resource, torch, transformers, lipscope.torch as lt
        config = transformers.BertConfig(vocab_size=400_000, hidden_size=256, num_hidden_layers=1, num_attention_heads=2,
                                         intermediate_size=64, max_position_embeddings=32)
        small = transformers.BertModel(transformers.BertConfig(**{**config.to_dict(), "vocab_size": 100})).eval()
        lt.audit(small, input_ids=torch.arange(6), layers=[0], heads="all")  # what any audit takes
        with torch.device("meta"):
            model = transformers.BertModel(config).eval()
        model = model.to_empty(device="cpu")
        for tensor in model.state_dict().values():
            tensor.fill_(0.5) if tensor.is_floating_point() else tensor.zero_()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        (found,) = lt.audit(model, input_ids=torch.arange(6), layers=[0], heads="all")
        assert found.parameters["operator"] == "lipscope"
        print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 100


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama"])
def test_known_models_are_measured_by_the_kernels(name):
    model = make(name)
    maps = ("attn", "residual", "block", "model")
    ids = torch.stack([torch.arange(10), torch.arange(10, 20)])
    given = dict(input_ids=ids, maps=maps, heads="each", lengths=[2, 4], samples=1, offset=1, dtype="f64")
    found = lt.audit(model, **given)
    expected = lt.audit(model, **given, kernels="autograd")
    assert len(found) == len(expected) == 2 * 2 * (8 + 2 + 2 + 1)
    for a, b in zip(found, expected):
        for field in ("map", "layer", "head", "n", "d", "sample", "norm", "model", "model_sha256", "input"):
            assert getattr(a, field) == getattr(b, field), field
        assert (a.parameters["operator"], b.parameters["operator"]) == ("lipscope", "autograd")
        assert a.lower == pytest.approx(b.lower, rel=1e-6) and a.upper >= a.lower
        assert b.details["why_autograd"] == "asked for"
        assert a.direction.numel() == b.direction.numel()


def test_models_that_the_kernels_do_not_know_are_measured_by_autograd():
    def why(model):
        (record,) = lt.audit(model, input_ids=IDS, maps="attn", heads="all", layers=[0])
        assert record.parameters["operator"] == "autograd"
        return record.details["why_autograd"]

    assert why(make("gemma2")) == "model type gemma2"
    model = make("gpt2")
    forward = model.transformer.h[0].mlp.forward
    model.transformer.h[0].mlp.forward = lambda x: 2 * forward(x)
    assert why(model) == "transformer.h.0.mlp has another forward"
    model = make("gpt2")
    model.transformer.h[1].attn.register_forward_hook(lambda *a: None)
    assert why(model) == "transformer.h.1.attn has a hook"
    model = make("llama")
    model.model.layers[0].mlp = torch.nn.Sequential(model.model.layers[0].mlp, Twice())
    assert "layers.0.mlp.1 is a" in why(model)
    assert why(make("bert").double()).endswith("is torch.float64")
    config = transformers.LlamaConfig(**GROUPED, rope_parameters={"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4})
    assert "rope" in why(transformers.LlamaForCausalLM(config).eval())


class Twice(torch.nn.Module):
    def forward(self, x):
        return 2 * x

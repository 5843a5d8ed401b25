"""lipscope.torch.replace_attention on models of transformers."""

import copy
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import lipscope  # noqa: E402
import lipscope.torch as lt  # noqa: E402

D, HEADS = 16, 4
SMALL = dict(
    vocab_size=40, hidden_size=D, num_hidden_layers=2, num_attention_heads=HEADS, intermediate_size=24,
    max_position_embeddings=32, initializer_range=0.3, bos_token_id=0, eos_token_id=1, pad_token_id=2,
)  # fmt: skip
GPT2 = dict(
    vocab_size=40, n_embd=D, n_layer=2, n_head=HEADS, n_positions=32, initializer_range=0.3, bos_token_id=0,
    eos_token_id=1,
)  # fmt: skip
VIT = dict(
    hidden_size=D, num_hidden_layers=2, num_attention_heads=HEADS, intermediate_size=24, image_size=8, patch_size=4
)
IDS = torch.tensor([[5, 7, 30, 9, 3, 11], [8, 8, 21, 4, 6, 39]])
N = IDS.shape[1]


def make(name, dtype=torch.float64, **options):
    t = transformers
    torch.manual_seed(0)
    model = {
        "gpt2": lambda: t.GPT2LMHeadModel(t.GPT2Config(**{**GPT2, **options})),
        "bert": lambda: t.BertForMaskedLM(t.BertConfig(**{**SMALL, **options})),
        "decoder": lambda: t.BertLMHeadModel(t.BertConfig(**{**SMALL, "is_decoder": True, **options})),
        "vit": lambda: t.ViTForImageClassification(t.ViTConfig(**{**VIT, **options})),
        "llama": lambda: t.LlamaForCausalLM(t.LlamaConfig(**{**SMALL, "num_key_value_heads": 2, **options})),
    }[name]()
    with torch.no_grad():  # transformers begins with biases 0, which hide mistakes
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.2)
    return model.to(dtype).eval()


def given(name):
    if name == "vit":
        return {"pixel_values": torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1)).double()}
    return {"input_ids": IDS}


def old_weights(name, model, i):
    """W_Q, W_V, W_O from the right, b_V and b_O of layer i, read from the model as it was."""
    if name == "gpt2":
        a = model.transformer.h[i].attn
        w, b = a.c_attn.weight, a.c_attn.bias
        return w[:, :D], w[:, 2 * D :], a.c_proj.weight, b[2 * D :], a.c_proj.bias
    if name == "vit":
        a = model.vit.layers[i].attention
        return a.q_proj.weight.T, a.v_proj.weight.T, a.o_proj.weight.T, a.v_proj.bias, a.o_proj.bias
    a = model.bert.encoder.layer[i].attention
    return a.self.query.weight.T, a.self.value.weight.T, a.output.dense.weight.T, a.self.value.bias, a.output.dense.bias


def new_layers(found):
    return list(found.layers.values())


@pytest.mark.parametrize("name", ["gpt2", "bert", "decoder", "vit"])
def test_layers_are_l2_attention_in_cpp(name):
    model = make(name)
    before = copy.deepcopy(model)
    layers = new_layers(lt.replace_attention(model, "l2", weights="kept"))
    assert len(layers) == 2
    for i, layer in enumerate(layers):
        seen = []
        handle = layer.register_forward_hook(lambda m, args, out: seen.append((args[0].detach(), out[0].detach())))
        model(**given(name))
        handle.remove()
        ((x, y),) = seen
        q, v, o, v_bias, o_bias = (w.detach() for w in old_weights(name, before, i))
        mask = "causal" if name in ("gpt2", "decoder") else "none"
        cpp = lipscope.Attention(kind="l2", heads=HEADS, mask=mask, q=q, v=v, o=o, v_bias=v_bias, o_bias=o_bias)
        assert np.abs(y.numpy() - np.stack([cpp(one) for one in x])).max() < 1e-10
        assert y.abs().max() > 0.1


def test_what_follows_attention_in_bert_is_a_residual_and_a_norm():
    model = make("bert")
    lt.replace_attention(model)
    block, seen = model.bert.encoder.layer[0].attention, []
    block.self.register_forward_hook(lambda m, args, out: seen.append((args[0].detach(), out[0].detach())))
    block.register_forward_hook(lambda m, args, out: seen.append(out[0].detach()))
    model(input_ids=IDS)
    (x, y), output = seen
    assert torch.allclose(output, block.output.LayerNorm(x + y), atol=1e-12)


def logits(model, ids, **more):
    with torch.no_grad():
        return model(input_ids=ids, **more).logits


@pytest.mark.parametrize("name", ["gpt2", "decoder", "llama"])
def test_a_later_token_changes_nothing_before_it(name):
    model = make(name)
    lt.replace_attention(model)
    other = IDS.clone()
    other[:, 4] = 12
    a, b = logits(model, IDS), logits(model, other)
    assert torch.equal(a[:, :4], b[:, :4])
    assert (a[:, 4:] - b[:, 4:]).abs().amax((0, 2)).min() > 1e-3


def test_without_the_mask_interface_it_does_not_run(monkeypatch):
    # transformers makes no mask for a name that is not in its table of masks, and says nothing
    model = make("gpt2")
    lt.replace_attention(model)
    masks = transformers.AttentionMaskInterface._global_mapping
    monkeypatch.delitem(masks, "lipscope")
    with pytest.raises(lipscope.InputError, match="this model is causal: transformers made no mask under the attn"):
        logits(model, IDS)
    monkeypatch.undo()
    logits(model, IDS)
    model.set_attn_implementation("sdpa")  # which relies on is_causal in place of a mask
    with pytest.raises(lipscope.InputError, match="'sdpa'; set it to 'lipscope'"):
        logits(model, IDS)


@pytest.mark.parametrize("name", ["gpt2", "bert", "llama"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_is_seen_by_no_token(name, side):
    if (name, side) == ("bert", "left"):
        pytest.skip("BERT's positions begin at the padding")
    model = make(name)
    lt.replace_attention(model)
    padding = torch.full((2, 3), 2)
    zeros, ones = torch.zeros_like(padding), torch.ones_like(IDS)
    padded = torch.cat([padding, IDS] if side == "left" else [IDS, padding], 1)
    mask = torch.cat([zeros, ones] if side == "left" else [ones, zeros], 1)
    more = {} if name == "bert" else {"position_ids": (mask.cumsum(1) - 1).clamp(min=0)}
    got = logits(model, padded, attention_mask=mask, **more)
    assert got.isfinite().all()
    kept = slice(3, None) if side == "left" else slice(N)
    assert torch.allclose(got[:, kept], logits(model, IDS), atol=1e-10)


def test_padding_counts_in_no_kind_and_has_the_bias_as_its_output():
    ids = torch.cat([IDS, torch.full((2, 3), 2)], 1)
    mask = torch.cat([torch.ones_like(IDS), torch.zeros(2, 3, dtype=torch.long)], 1)
    for kind in ("l2", "sigmoid"):  # sigmoid attention divides by the number of tokens
        model = make("bert")
        layer = new_layers(lt.replace_attention(model, kind, weights="kept"))[0]
        seen = []
        layer.register_forward_hook(lambda m, args, out: seen.append(out[0].detach()))
        got = logits(model, ids, attention_mask=mask)
        assert torch.allclose(got[:, :N], logits(model, IDS), atol=1e-10), kind
        assert torch.equal(seen[0][:, N:], layer.out_proj_bias.detach().expand(2, 3, D)), kind


def test_masks_of_four_axes_are_used_as_they_are():
    model = make("gpt2")
    lt.replace_attention(model)
    window = torch.ones(N, N, dtype=torch.bool).tril().triu(-1)[None, None]
    a = logits(model, IDS, attention_mask=window)
    added = torch.zeros(1, 1, N, N).double().masked_fill(~window, torch.finfo(torch.float64).min)
    b = logits(model, IDS, attention_mask=added)
    assert torch.allclose(a, b, atol=1e-12) and not torch.allclose(a, logits(model, IDS), atol=1e-3)
    model.transformer.h[0].attn.config._attn_implementation = "lipscope"
    with pytest.raises(lipscope.InputError, match=r"shape \[2, 4, 6, 6\] in a layer; expected \[2, 1, 6, 6\]"):
        logits(model, IDS, attention_mask=window.expand(2, 4, N, N))


@pytest.mark.parametrize("name", ["gpt2", "bert", "vit", "llama"])
def test_saved_models_come_back(name, tmp_path):
    model = make(name, torch.float32)
    lt.replace_attention(model, weights="new")
    inputs = {k: v.float() if v.is_floating_point() else v for k, v in given(name).items()}
    expected = model(**inputs).logits
    model.save_pretrained(tmp_path)
    again = lt.from_pretrained(type(model), tmp_path)
    assert type(again) is type(model) and not again.training
    assert torch.equal(again(**inputs).logits, expected)
    assert torch.equal(pickle.loads(pickle.dumps(again))(**inputs).logits, expected)
    assert torch.equal(copy.deepcopy(again)(**inputs).logits, expected)
    make(name, torch.float32).save_pretrained(tmp_path / "plain")
    with pytest.raises(lipscope.InputError, match="has no lipscope_attention; its attention was not replaced"):
        lt.from_pretrained(type(model), tmp_path / "plain")


@pytest.mark.parametrize("name", ["gpt2", "bert", "vit", "llama"])
def test_gradients_reach_every_weight(name):
    model = make(name).train()
    lt.replace_attention(model)
    model.requires_grad_(True)
    assert all(m.training for m in model.modules())
    y = model(**given(name)).logits
    (y * torch.linspace(-1, 1, y.numel()).double().view_as(y)).sum().backward()
    for path, p in model.named_parameters():
        if path != "bert.embeddings.token_type_embeddings.weight":
            assert p.grad is not None and p.grad.isfinite().all() and p.grad.abs().max() > 1e-9, path


def test_generation_works_without_a_cache_and_caches_are_refused():
    model = make("gpt2")
    lt.replace_attention(model)
    written = model.generate(IDS[:1], max_new_tokens=4, do_sample=False, eos_token_id=None, pad_token_id=0)
    ids = IDS[:1]
    for _ in range(4):
        ids = torch.cat([ids, logits(model, ids)[:, -1:].argmax(-1)], 1)
    assert torch.equal(written, ids)
    with pytest.raises(lipscope.InputError, match="past_key_values: replaced attention has no cache"):
        model(input_ids=IDS, use_cache=True)
    with pytest.raises(lipscope.InputError, match="output_attentions: replaced attention does not record"):
        bert = make("bert")
        lt.replace_attention(bert)
        bert(input_ids=IDS, output_attentions=True)


def test_what_cannot_be_replaced_is_named_and_nothing_is_changed():
    t = transformers

    def refused(model, words, **options):
        before = [type(m) for m in model.modules()]
        with pytest.raises(lipscope.InputError, match=words):
            lt.replace_attention(model, **options)
        assert [type(m) for m in model.modules()] == before
        assert model.config._attn_implementation != "lipscope"

    refused(make("gpt2", add_cross_attention=True), r"transformer.h.0.crossattention: add_cross_attention")
    refused(make("gpt2", scale_attn_by_inverse_layer_idx=True), "h.0.attn: scale_attn_by_inverse_layer_idx=True scales")
    refused(make("decoder", add_cross_attention=True), "layer.0.crossattention: add_cross_attention")
    refused(make("llama", head_dim=8), "layers.0.self_attn: head_dim 8: 4 heads make 32 features, and tokens have 16")
    refused(make("llama"), "layers.0.self_attn: rotary positions, which kind cosine does not have", kind="cosine")
    yarn = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1e4, "original_max_position_embeddings": 32}
    refused(make("llama", rope_parameters=yarn), "layers.0.self_attn: rope_type yarn stretches")
    other = t.DistilBertConfig(vocab_size=9, dim=8, n_layers=1, n_heads=2, hidden_dim=8)
    refused(t.DistilBertModel(other), "is not known here")
    with pytest.raises(lipscope.InputError, match="a GPT2Attention alone"):
        lt.replace_attention(make("gpt2").transformer.h[0].attn)
    with pytest.raises(lipscope.InputError, match="expected a model class of transformers"):
        lt.from_pretrained(torch.nn.Linear, "nowhere")


def test_a_kind_with_keys_in_bert():
    model = make("bert")
    a = copy.deepcopy(model).bert.encoder.layer[0].attention
    layer = new_layers(lt.replace_attention(model, "cosine", weights="kept", tau=3.0))[0]
    seen = []
    layer.register_forward_hook(lambda m, args, out: seen.append((args[0].detach(), out[0].detach())))
    model(input_ids=IDS)
    ((x, y),) = seen
    w = {name[0]: getattr(a.self, name).weight.detach().T for name in ("query", "key", "value")}
    cpp = lipscope.Attention(
        kind="cosine", heads=HEADS, tau=3.0, o=a.output.dense.weight.detach().T,
        o_bias=a.output.dense.bias.detach(), **w,
    )  # fmt: skip
    assert np.abs(y.numpy() - np.stack([cpp(one) for one in x])).max() < 1e-10


def test_grouped_heads_begin_with_the_values_of_their_group():
    model = make("llama")
    a = copy.deepcopy(model).model.layers[0].self_attn
    layer = new_layers(lt.replace_attention(model, weights="kept"))[0]
    k = D // HEADS
    for head in range(HEADS):
        group = head // 2
        assert torch.equal(layer.v_proj_weight[head * k : (head + 1) * k], a.v_proj.weight[group * k : (group + 1) * k])
    assert torch.equal(layer.q_proj_weight, a.q_proj.weight)


def test_a_replaced_model_can_be_audited():
    model = make("gpt2")
    lt.replace_attention(model)
    found = lt.audit(model, input_ids=IDS[0], maps=("attn", "block", "model"), heads="all")
    assert [(r.map, r.layer) for r in found] == [("attn", 0), ("attn", 1), ("block", 0), ("block", 1), ("model", None)]
    assert all(r.parameters["operator"] == "autograd" and r.lower > 0 for r in found)


@pytest.mark.parametrize("name", ["gpt2", "bert"])
def test_fine_tuning_lowers_the_loss_steadily(name):
    # 64 letters from one quarter of the alphabet, then from another: with attention 2.1 nats are left of 3.5
    numbers = torch.Generator().manual_seed(3)
    quarters = torch.randint(4, (100,), generator=numbers).repeat_interleave(64)
    text = 3 + 8 * quarters + torch.randint(8, quarters.shape, generator=numbers)
    torch.manual_seed(0)
    quiet = dict(initializer_range=0.02, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**{**GPT2, **quiet}))
    if name == "bert":
        quiet = dict(initializer_range=0.02, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
        model = transformers.BertForMaskedLM(transformers.BertConfig(**{**SMALL, **quiet}))
    lt.replace_attention(model, weights="new")
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(120):
        ids = text[torch.randint(len(text) - 16, (16, 1), generator=numbers) + torch.arange(16)]
        hidden = torch.rand(ids.shape, generator=numbers) < 0.2
        batch = (ids, ids) if name == "gpt2" else (ids.masked_fill(hidden, 0), ids.masked_fill(~hidden, -100))
        optimiser.zero_grad()
        loss = model(input_ids=batch[0], labels=batch[1]).loss
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    means = [sum(losses[i : i + 30]) / 30 for i in range(0, 120, 30)]
    assert all(b < a for a, b in zip(means, means[1:])), means
    assert means[-1] < losses[0] - 0.6, means

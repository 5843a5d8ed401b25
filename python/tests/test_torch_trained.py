"""Models of `lipscope train` as torch modules, and back."""

import json
import shutil

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import lipscope  # noqa: E402
import lipscope.torch as lt  # noqa: E402
from lipscope.torch import trained_heads  # noqa: E402
from lipscope.torch.trained import TrainedBlock, _Shape  # noqa: E402

CONTEXT = 12
BLOCK = {
    "model_type": "lipscope", "mixer": "l2", "norm": "none", "width": 6, "num_heads": 3, "context": 9, "num_layers": 1,
    "mlp_width": 8, "activation": "max_min", "position_heads": 1, "heads_apart": True, "positions": "none",
}  # fmt: skip
MODELS = {
    "dot": {"model": "dot"},
    "l2": {"model": "l2", "norm": "pre", "activation": "relu"},
    "contractive-l2": {"model": "contractive-l2"},
    "l2 without norms": {"model": "l2", "norm": "none"},
    "invertible": {"invertible": True},
    "position": {"model": "position", "norm": "none", "residual": "none", "activation": "max_min"},
    "rotary": {"model": "dot", "positions": "rotary", "norm": "pre", "head_bias": True},
    "relative": {"model": "l2", "positions": "relative"},
    "untied": {"model": "l2-untied", "positions": "none"},
    "dot apart": {"model": "dot", "heads_apart": True, "positions": "none", "norm": "none"},
    "l2 apart": {
        "model": "l2", "position_heads": 1, "positions": "table", "norm": "none", "residual": "convex",
        "residual_share": 0.3, "activation": "max_min", "head_bias": True,
    },
    "relative apart": {
        "model": "dot", "position_heads": 1, "positions": "relative", "norm": "none", "residual": "none",
    },
    "by coordinate": {"model": "contractive-l2", "divide": "coordinate", "positions": "relative", "quiet_gain": 8.0},
    "by coordinate, invertible": {"invertible": True, "divide": "coordinate"},
}  # fmt: skip


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    rng = np.random.default_rng(0)
    words = ["the", "whale", "déjà", "sea", "€", "and", "ships\n"]
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text(" ".join(rng.choice(words, 700)), encoding="utf-8")
    return path


@pytest.fixture(scope="module", params=MODELS)
def folder(request, text, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "run"
    lipscope.train(
        text, out, layers=2, width=8, heads=2, context=CONTEXT, mlp_width=12, batch=4, steps=15, eval_every=15,
        measure=0, lr=1e-2, warmup=1, threads=1, progress=False, **MODELS[request.param],
    )  # fmt: skip
    other = {"contractive-l2": "silu", "l2 without norms": "gelu_new"}.get(request.param)
    if other:  # which eval knows and train does not
        config = json.loads((out / "config.json").read_text())
        (out / "config.json").write_text(json.dumps({**config, "activation": other}))
    return out


def by_the_program(program, folder, text):
    return json.loads(program("eval", folder, "--text", text, "--split", "test", "--json"))["nll"]


def test_piece(text):
    whole = text.read_text(encoding="utf-8")
    return whole[len(whole) * 95 // 100 :]


test_piece.__test__ = False


def test_losses_are_those_of_the_program_there_and_back(program, folder, text, tmp_path):
    model = lt.TrainedModel.load(folder)
    expected = by_the_program(program, folder, text)
    assert model.loss(test_piece(text)) == pytest.approx(expected, abs=1e-6)
    model.save(tmp_path / "same")
    assert by_the_program(program, tmp_path / "same", text) == expected

    # what torch has learnt, the program reads
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    numbers = model.encode(text.read_text(encoding="utf-8")[: 8 * CONTEXT + 1])
    read, follow = (numbers[i : i + 8 * CONTEXT].view(8, CONTEXT) for i in (0, 1))
    for _ in range(5):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(read).flatten(0, 1), follow.flatten()).backward()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
        optimiser.step()
    learnt = model.loss(test_piece(text))
    assert abs(learnt - expected) > 1e-3
    model.save(tmp_path / "learnt")
    assert by_the_program(program, tmp_path / "learnt", text) == pytest.approx(learnt, abs=1e-5)
    again = lt.TrainedModel.load(tmp_path / "learnt")
    assert all(torch.equal(a, b) for a, b in zip(model.state_dict().values(), again.state_dict().values()))


def test_bounds_are_those_of_the_program(folder):
    model = lt.TrainedModel.load(folder)
    config = json.loads((folder / "config.json").read_text())
    if config["positions"] in ("rotary", "relative") or config["mixer"] == "l2-untied":
        with pytest.raises(lipscope.InputError, match="has no bound that is known here|has no constant"):
            lt.proved_bound(model, CONTEXT, radius=3.0)
        return
    if config["norm"] != "none":
        return
    x = model.embedded(torch.arange(CONTEXT)[None] % len(model.characters)).detach()
    whole = torch.nn.Sequential(*model.blocks, model.head)
    measured = lt.local_constant(whole, x).lower
    if config["mixer"] == "dot":
        radius = float(x.norm(dim=-1).max()) * 1.0001
        with pytest.raises(lipscope.InputError, match="has no constant over all inputs; give radius"):
            lt.proved_bound(model, CONTEXT)
        assert measured <= lt.proved_bound(model, CONTEXT, radius=radius).upper
        return
    ours = lt.proved_bound(model, CONTEXT).upper
    (theirs,) = lipscope.bound(folder, map="model", length=CONTEXT, progress=False)
    head = float(torch.linalg.matrix_norm(model.head.weight.detach().double(), 2))  # which map model ends before
    if config["residual"] == "convex":  # the program knows more of such an MLP: theory/centred_slopes.h
        assert theirs.upper * head <= ours * (1 + 1e-9)
    else:
        assert ours == pytest.approx(theirs.upper * head, rel=1e-3)
    assert measured <= ours


def by_ascent(f, bound, shape, norm, radius, seed):
    """The largest quotient of norms between two inputs of the ball that gradient ascent finds, over the bound."""
    torch.manual_seed(seed)
    size = {"2": lambda z: z.norm(), "token": lambda z: z.norm(dim=-1).max(), "inf": lambda z: z.abs().max()}[norm]
    x, step = (torch.randn(shape, dtype=torch.float64, requires_grad=True) for _ in range(2))
    optimiser = torch.optim.Adam([x, step], lr=0.1)

    def inside(z):
        lengths = z.norm(dim=-1, keepdim=True)
        return z * (radius / lengths).clamp(max=1.0)

    best = 0.0
    for _ in range(60):
        optimiser.zero_grad()
        u, v = inside(x), inside(x + 1e-3 * step)
        quotient = size(f(u) - f(v)) / size(u - v)
        best = max(best, float(quotient))
        (-quotient).backward()
        optimiser.step()
    return best / bound


@pytest.mark.parametrize("norm", ["2", "token", "inf"])
@pytest.mark.parametrize("which", ["position", "l2", "dot", "position and l2", "by coordinate", "block"])
def test_no_pair_of_inputs_exceeds_a_bound(which, norm):
    torch.manual_seed(5)
    heads, radius = trained_heads, 2.0
    f = {
        "position": lambda: heads.HeadsApart(heads.PositionHeads(6, 3, 2, 9), None),
        "l2": lambda: heads.HeadsApart(None, heads.ComparingHeads("l2", 6, 3, 2, 9, projects=False)),
        "dot": lambda: heads.HeadsApart(None, heads.ComparingHeads("dot", 6, 3, 2, 9, projects=False)),
        "position and l2": lambda: heads.HeadsApart(
            heads.PositionHeads(6, 1, 2, 9), heads.ComparingHeads("l2", 6, 2, 2, 9, projects=False)
        ),
        "by coordinate": lambda: heads.ComparingHeads("l2", 6, 3, 2, 9, contraction=0.7),
        "block": lambda: TrainedBlock(_Shape({**BLOCK, "residual": "convex", "residual_share": 0.4}, "here")),
    }[which]().double()
    with torch.no_grad():
        for p in f.parameters():
            p.copy_(torch.randn_like(p))
    if which == "dot" and norm == "inf":
        with pytest.raises(lipscope.InputError, match="no bound in the inf-norm"):
            lt.proved_bound(f, 7, norm, radius)
        return
    bound = lt.proved_bound(f, 7, norm, radius).upper
    # differentiable, it is the same number
    assert float(lt.lipschitz_bound(f, 7, norm, radius)) == pytest.approx(bound, rel=1e-6)
    found = max(by_ascent(f, bound, (1, 7, 6), norm, radius, seed) for seed in range(3))
    assert found <= 1.0, found
    if which == "position" and norm == "2":
        assert found > 0.5
    if which == "by coordinate" and norm == "inf":
        # the factors are made so that this map is 0.7-Lipschitz in the inf-norm
        assert found * bound <= 0.7


def test_position_heads_have_the_constant_worked_by_hand():
    """One head looks one token back, one two: y_i = (0.6 · 2 x_{i−1,1}, 0.8 · 3 x_{i−2,2})."""
    f = trained_heads.HeadsApart(trained_heads.PositionHeads(2, 2, 1, 3), None)
    with torch.no_grad():
        f.share.copy_(torch.tensor([0.36, 0.64]).log())
        f.position.distance_bias.copy_(torch.tensor([[0.0, 200.0, 0.0], [0.0, 0.0, 200.0]]))
        f.position.v_proj_weight.copy_(torch.tensor([[2.0, 0.0], [0.0, 3.0]]))
    x = torch.tensor([[[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]]])
    expected = torch.tensor([[[0.0, 0.0], [1.2, 0.0], [2.4, 24.0]]])
    assert torch.allclose(f(x), expected, atol=1e-5)
    for norm, value in (("2", 2.4), ("token", (1.2**2 + 2.4**2) ** 0.5), ("inf", 2.4)):
        proved = lt.proved_bound(f, 3, norm)
        assert value <= proved.upper * (1 + 1e-7) and proved.upper == pytest.approx(value, rel=1e-6)
        assert proved.upper_by == "position_heads"


@pytest.mark.parametrize("norm, expected", [("2", 1.0), ("token", 1.0), ("inf", 0.8)])
def test_two_heads_alike_have_the_constant_of_one_times_their_shares(norm, expected):
    """(c_1² + c_2²)^{1/2} L of heads that both have the constant L, and max(c_1, c_2) L in the inf-norm."""
    torch.manual_seed(6)
    alone = lt.L2SelfAttention(4, 1).double()
    both = trained_heads.HeadsApart(None, trained_heads.ComparingHeads("l2", 4, 2, 4, 9, projects=False)).double()
    with torch.no_grad():
        alone.out_proj_weight.copy_(torch.eye(4))
        both.share.copy_(torch.tensor([0.36, 0.64]).log())
        both.comparing.q_proj_weight.copy_(alone.q_proj_weight.repeat(2, 1))
        both.comparing.v_proj_weight.copy_(alone.v_proj_weight.repeat(2, 1))
    one = lt.proved_bound(alone, 7, norm, mask="causal").upper
    assert lt.proved_bound(both, 7, norm).upper == pytest.approx(expected * one, rel=1e-6)


def test_texts_become_numbers_and_back(folder):
    model = lt.TrainedModel.load(folder)
    assert model.decode(model.encode("the € déjà\n")) == "the € déjà\n"
    with pytest.raises(lipscope.InputError, match=r"text: the model does not know 'X' \(at 2\)"):
        model.loss("aaX")
    with pytest.raises(lipscope.InputError, match="text: 1 characters"):
        model.loss("a")
    with pytest.raises(lipscope.InputError, match=r"characters: shape \[1, 13\]; expected \[batch, n\], n at most 12"):
        model(torch.zeros(1, 13, dtype=torch.long))


def test_what_is_no_such_folder_is_refused_with_its_file(text, tmp_path):
    out = tmp_path / "run"
    shape = dict(layers=1, width=4, heads=1, context=4, model="l2")
    lipscope.train(text, out, **shape, steps=1, measure=0, threads=1, progress=False)
    tensors = (out / "model.safetensors").read_bytes()
    config = json.loads((out / "config.json").read_text())

    def refused(words, content=None, weights=None, **changes):
        shutil.rmtree(tmp_path / "bad", ignore_errors=True)
        (tmp_path / "bad").mkdir()
        changed = json.dumps({**config, **changes}) if content is None else content
        (tmp_path / "bad" / "config.json").write_text(changed)
        (tmp_path / "bad" / "model.safetensors").write_bytes(tensors if weights is None else weights)
        with pytest.raises(lipscope.InputError, match=words):
            lt.TrainedModel.load(tmp_path / "bad")

    refused("config.json: mixer: 'lstm'; expected dot, l2, l2-untied, contractive-l2, position", mixer="lstm")
    refused("config.json: model_type: 'gpt2'; expected lipscope", model_type="gpt2")
    refused("config.json: width: 0; expected a positive whole number", width=0)
    refused("config.json: width 4 does not divide into num_heads 3", num_heads=3)
    refused("config.json: contraction: with l2 and norm post", contraction=0.5)
    refused("config.json: residual: 'sum'; expected add, convex, none", residual="sum")
    refused("config.json: residual: 'none' with norm post; with norms it is add", residual="none")
    convex = {"norm": "none", "residual": "convex"}
    refused("config.json: residual_share: 1.5 is not between 0 and 1", **convex, residual_share=1.5)
    refused("config.json: head_bias: 1; expected true or false", head_bias=1)
    refused("model.safetensors: no lm_head.bias", head_bias=True)
    refused("config.json: division: coordinate with l2; expected contractive-l2", division="coordinate")
    refused("config.json: position_heads: 1 of 1 with l2; expected fewer", position_heads=1, heads_apart=True)
    refused("config.json: position_heads: -1; expected a whole number, 0 or more", position_heads=-1)
    refused("config.json: positions: rotary with l2; expected dot with heads of even width", positions="rotary")
    refused("config.json: mlp_width: 5; max_min takes pairs", activation="max_min", mlp_width=5)
    refused("model.safetensors: no h.0.attn.distance_bias", positions="relative")
    refused("config.json: characters: expected a list", characters="abc")
    refused("config.json: no JSON", content="{")
    refused("config.json: expected an object", content="[]")
    refused(r"model.safetensors: no h.1.attn.q.weight", num_layers=2)
    refused(r"model.safetensors: wpe.weight is \[4, 4\]; the model has \[5, 4\] there", context=5)
    refused("model.safetensors: no safetensors file", weights=b"")
    refused("model.safetensors: no safetensors file: a header of", weights=b"\xff" * 40)
    refused("model.safetensors: no safetensors file: .* bytes for shape", weights=tensors[:-4])
    with pytest.raises(lipscope.InputError, match="config.json: No such file"):
        lt.TrainedModel.load(tmp_path / "nowhere")

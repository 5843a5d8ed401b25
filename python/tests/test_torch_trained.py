"""Models of `lipscope train` as torch modules, and back."""

import json
import shutil

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import lipscope  # noqa: E402
import lipscope.torch as lt  # noqa: E402

CONTEXT = 12
MODELS = {
    "dot": {"model": "dot"},
    "l2": {"model": "l2", "norm": "pre", "activation": "relu"},
    "contractive-l2": {"model": "contractive-l2"},
    "l2 without norms": {"model": "l2", "norm": "none"},
    "invertible": {"invertible": True},
}


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
    if json.loads((folder / "config.json").read_text())["norm"] != "none":
        return
    ours = lt.proved_bound(model, CONTEXT).upper
    (theirs,) = lipscope.bound(folder, map="model", length=CONTEXT, progress=False)
    head = float(torch.linalg.matrix_norm(model.head.weight.detach().double(), 2))  # which map model ends before
    assert ours == pytest.approx(theirs.upper * head, rel=1e-3)
    x = model.embedded(torch.arange(CONTEXT)[None] % len(model.characters)).detach()
    whole = torch.nn.Sequential(*model.blocks, model.head)
    assert lt.local_constant(whole, x).lower <= ours


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

    refused("config.json: mixer: 'l2-untied'; expected dot, l2, contractive-l2", mixer="l2-untied")
    refused("config.json: model_type: 'gpt2'; expected lipscope", model_type="gpt2")
    refused("config.json: width: 0; expected a positive whole number", width=0)
    refused("config.json: width 4 does not divide into num_heads 3", num_heads=3)
    refused("config.json: contraction: with l2 and norm post", contraction=0.5)
    refused("config.json: residual is 'none'; a torch module is made of models with 'add' alone", residual="none")
    refused("config.json: head_bias is True; a torch module is made of models with False alone", head_bias=True)
    refused("config.json: division is 'coordinate'; a torch module is made of models with 'layer' alone", division="coordinate")
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

"""lipscope.torch.audit on models of torch alone."""

import copy

import pytest

torch = pytest.importorskip("torch")
nn = torch.nn

import lipscope  # noqa: E402
import lipscope.torch as lt  # noqa: E402


def dense_norm(f, x):
    jacobian = torch.autograd.functional.jacobian(f, x).reshape(-1, x.numel())
    return float(torch.linalg.svdvals(jacobian)[0])


class OwnAttention(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4)
        weights = torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, -1)
        return self.out((weights @ v).transpose(1, 2).reshape(b, n, d))


class OwnBlock(nn.Module):
    def __init__(self, width, n_heads, parallel=False):
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(width), OwnAttention(width, n_heads)
        self.second, self.mlp = nn.LayerNorm(width), nn.Sequential(nn.Linear(width, 12), nn.GELU(), nn.Linear(12, width))
        self.parallel = parallel

    def forward(self, x):
        if self.parallel:
            h = self.norm(x)
            return self.attention(h) + self.mlp(h) + x
        x = x + self.attention(self.norm(x))
        return x + self.mlp(self.second(x))


class OwnModel(nn.Module):
    def __init__(self, width=6, heads=3, layers=2, **options):
        super().__init__()
        self.embedding = nn.Embedding(20, width)
        self.blocks = nn.ModuleList([OwnBlock(width, heads, **options) for _ in range(layers)])
        self.final, self.head = nn.LayerNorm(width), nn.Linear(width, 20)

    def forward(self, input_ids):
        x = self.embedding(input_ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.final(x))


@pytest.fixture
def own():
    torch.manual_seed(0)
    return OwnModel().eval()


IDS = torch.tensor([3, 1, 4, 1, 5])


def reference(model):
    """The model in f64, and the input of each of its layers."""
    exact = copy.deepcopy(model).double()
    inputs = [exact.embedding(IDS)[None].detach()]
    for block in exact.blocks:
        inputs.append(block(inputs[-1]).detach())
    return exact, inputs


def test_maps_of_a_model_of_ones_own_are_what_they_are_called(own):
    exact, inputs = reference(own)
    found = lt.audit(own, input_ids=IDS, heads="all", maps=("core", "attn", "residual", "block", "model"), dtype="f64")
    expected = []
    for name in ("core", "attn", "residual", "block"):
        for block, x in zip(exact.blocks, inputs):
            heads = copy.deepcopy(block.attention)
            heads.out = nn.Identity()
            f, at = {
                "core": (heads, block.norm(x)),
                "attn": (block.attention, block.norm(x)),
                "residual": (lambda t, b=block: t + b.attention(b.norm(t)), x),
                "block": (block, x),
            }[name]
            expected.append((name, dense_norm(f, at.detach())))

    def whole(t):
        for block in exact.blocks:
            t = block(t)
        return exact.final(t)

    expected.append(("model", dense_norm(whole, inputs[0])))
    assert [r.map for r in found] == [name for name, _ in expected]
    assert [r.layer for r in found] == [0, 1] * 4 + [None]
    for record, (_, value) in zip(found, expected):
        assert record.lower == pytest.approx(value, rel=1e-6)
        assert record.parameters["operator"] == "autograd"


def test_each_head_is_measured_alone(own):
    exact, inputs = reference(own)
    for name in ("attn", "core"):
        found = lt.audit(own, input_ids=IDS, maps=name, heads="each", layers=[1], dtype="f64")
        assert [(r.layer, r.head) for r in found] == [(1, 0), (1, 1), (1, 2)]
        x = exact.blocks[1].norm(inputs[1]).detach()
        for record in found:
            alone = copy.deepcopy(exact.blocks[1].attention)
            own_columns = slice(2 * record.head, 2 * record.head + 2)
            weight = torch.zeros(6, 6, dtype=torch.float64)
            weight[:, own_columns] = (alone.out.weight if name == "attn" else torch.eye(6).double())[:, own_columns].detach()
            alone.out.weight = nn.Parameter(weight)
            assert record.lower == pytest.approx(dense_norm(alone, x), rel=1e-6)
    chosen = lt.audit(own, input_ids=IDS, heads=[2, 0], layers=[1], dtype="f64")
    assert [r.head for r in chosen] == [2, 0]


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("norm_first", [False, True])
def test_torch_encoder(norm_first, frozen):
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True, norm_first=norm_first)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval().requires_grad_(not frozen)
    x = torch.randn(2, 4, 8)
    found = lt.audit(model, inputs=x, heads="all", maps=("attn", "residual", "block", "model"), dtype="f64")
    assert [r.sample for r in found] == [0] * 7 + [1] * 7
    exact = copy.deepcopy(model).double()
    first = exact.layers[0]

    def attn(t):
        return first.self_attn(t, t, t, need_weights=True)[0]

    def residual(t):
        return t + attn(first.norm1(t)) if norm_first else first.norm1(t + attn(t))

    at = x[:1].double()
    got = {(r.map, r.layer): r.lower for r in found if r.sample == 0}
    inner = first.norm1(at).detach() if norm_first else at
    assert got["attn", 0] == pytest.approx(dense_norm(attn, inner), rel=1e-6)
    assert got["residual", 0] == pytest.approx(dense_norm(residual, at), rel=1e-6)
    assert got["block", 0] == pytest.approx(dense_norm(first, at), rel=1e-6)
    assert got["model", None] == pytest.approx(dense_norm(exact, at), rel=1e-6)
    heads = lt.audit(model, inputs=x[:1], heads="each", layers=[0], dtype="f64")
    assert len(heads) == 2
    weight = first.self_attn.out_proj.weight
    for record in heads:
        alone = copy.deepcopy(first.self_attn)
        with torch.no_grad():
            alone.out_proj.weight[:, 4 * (1 - record.head) : 4 * (1 - record.head) + 4] = 0
        value = dense_norm(lambda t: alone(t, t, t)[0], inner)
        assert record.lower == pytest.approx(value, rel=1e-6)
    assert torch.equal(model.layers[0].self_attn.out_proj.weight.double(), weight)


def test_windows_follow_each_other(own):
    ids = torch.arange(20)
    found = lt.audit(own, input_ids=ids, heads="all", lengths=[2, 4], samples=2, offset=3, layers=[0])
    assert [(r.n, r.sample) for r in found] == [(2, 0), (2, 1), (4, 0), (4, 1)]
    for record, (begin, n) in zip(found, [(3, 2), (5, 2), (7, 4), (11, 4)]):
        alone = lt.audit(own, input_ids=ids[begin : begin + n], heads="all", layers=[0])
        assert alone[0].lower == record.lower

    def tokenizer(text, add_special_tokens):
        assert not add_special_tokens
        return {"input_ids": [ord(c) - ord("a") for c in text]}

    by_text = lt.audit(own, tokenizer, "abcdefgh", heads="all", layers=[0])
    assert by_text[0].lower == lt.audit(own, input_ids=ids[:8], heads="all", layers=[0])[0].lower and by_text[0].n == 8


def test_model_is_left_as_it_was(own):
    before = {k: v.clone() for k, v in own.state_dict().items()}
    lt.audit(own, input_ids=IDS, maps=("core", "attn", "residual", "block", "model"), heads="each")
    assert all(torch.equal(v, before[k]) for k, v in own.state_dict().items())
    assert all("forward" not in m.__dict__ for m in own.modules())
    assert all(p.requires_grad and p.grad is None for p in own.parameters())


def test_half_model(own):
    found = lt.audit(copy.deepcopy(own).bfloat16(), input_ids=IDS, heads="all", maps=("attn", "block"), dtype="f64")
    exact = lt.audit(copy.deepcopy(own).bfloat16().double(), input_ids=IDS, heads="all", maps=("attn", "block"))
    for a, b in zip(found, exact):
        assert a.lower == pytest.approx(b.lower, rel=1e-6)


class NoName(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(4, 4)

    def forward(self, x):
        return x.softmax(-2) * self.mix(x)


def test_what_cannot_be_measured_is_named(own):
    def refuses(message, model=own, **options):
        options = {"input_ids": IDS, **options}
        with pytest.raises(lipscope.InputError, match=message):
            lt.audit(model, **options)

    refuses(r"maps: 'mlp'; expected core, attn", maps="mlp")
    refuses(r"layers: 2; expected numbers from 0 to 1", layers=[2])
    refuses(r"heads: 3; expected numbers from 0 to 2", heads=[3])
    refuses(r"heads: 'some'", heads="some")
    refuses(r"heads: 1 stands twice", heads=[1, 1])
    refuses(r"model.blocks.0.mlp.3: Dropout with p=0.1 is in training mode; call model.eval", with_dropout())
    refuses(r"none of the 2 modules of this NoName is named …Attention; say attention=CLASS", NoName())
    refuses(r"expected one of text \(with tokenizer\), input_ids and inputs, got none", input_ids=None)
    refuses(r"got input_ids and inputs", inputs=IDS)
    refuses(r"tokenizer: is missing", input_ids=None, text="abc")
    refuses(r"input_ids: shape \[0\]", input_ids=torch.ones(0, dtype=torch.int64))
    refuses(r"input_ids: f32; expected integers", input_ids=torch.ones(3))
    refuses(r"2 windows of each of \[3\] tokens after 0 need 6 ids, and there are 5", lengths=[3], samples=2)
    refuses(r"OwnBlock runs mlp.0 beside its attention", OwnModel(parallel=True).eval(), maps="residual")
    refuses(r"model: expected a torch.nn.Module, got int", 3)
    refuses(r"dtype: 'f16'", dtype="f16")
    refuses(r"inputs: expected a tensor", input_ids=None, inputs={"input_ids": 3})


def with_dropout():
    model = OwnModel()
    model.blocks[0].mlp.append(nn.Dropout(0.1))
    return model


def test_class_of_the_attention_can_be_said():
    torch.manual_seed(2)
    model = nn.Sequential(nn.Linear(4, 4), NoName(), NoName()).eval()
    x = torch.randn(1, 5, 4)
    found = lt.audit(model, inputs=x, heads="all", attention=NoName, maps=("attn", "block"), dtype="f64")
    assert len(found) == 4
    exact = copy.deepcopy(model).double()
    at = exact[0](x.double()).detach()
    assert found[2].lower == pytest.approx(dense_norm(exact[1], at), rel=1e-6)

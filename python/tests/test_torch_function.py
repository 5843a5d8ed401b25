"""lipscope.torch.local_constant: the dense Jacobian's norm for any module, and a clear word for what has none."""

import copy
import math
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional

import lipscope  # noqa: E402
import lipscope.torch as lt  # noqa: E402
from conftest import hardest_values  # noqa: E402
from lipscope.jacobian_record import LocalOptions, jacobian_record  # noqa: E402
from lipscope.torch.jacobian import Jacobian  # noqa: E402


def dense_jacobian(f, x):
    """By torch's own backward pass, one row after another."""
    return torch.autograd.functional.jacobian(f, x).reshape(-1, x.numel())


def dense_norm(f, x):
    return float(torch.linalg.svdvals(dense_jacobian(f, x))[0])


class SelfAttention(nn.Module):
    """torch's attention of a sequence to itself."""

    def __init__(self, mask=None, **options):
        super().__init__()
        self.inner = nn.MultiheadAttention(8, 2, batch_first=True, **options)
        self.mask = mask

    def forward(self, x):
        return self.inner(x, x, x, attn_mask=self.mask, need_weights=False)[0]


class First(nn.Module):
    """The first of what a module returns."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)[0]


class Masked(nn.Module):
    """An encoder under a mask."""

    def __init__(self, inner, mask):
        super().__init__()
        self.inner, self.mask = inner, mask

    def forward(self, x):
        return self.inner(x, self.mask)


class RootMeanSquare(nn.Module):
    """A norm that asks for f32 by name, as many do."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(0.5, 2, width))
        self.rounds = True

    def forward(self, x):
        wide = x.to(torch.float32) if self.rounds else x
        return self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


class Scatter(nn.Module):
    """Writes into a tensor that it makes."""

    def forward(self, x):
        out = torch.zeros(x.shape[-1], x.shape[-1])
        out = out.to(x.dtype)
        out[0] = x[0].sin()
        out[1:] = x[0] * x[0, 0]
        return out


def encoder_layer(**options):
    return nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, **options)


causal = torch.full((5, 5), -math.inf).triu(1)
sequence, image, vector = (1, 5, 8), (1, 2, 6, 6), (3, 10)

MODULES = {
    "linear": (lambda: nn.Linear(10, 7), vector),
    "linear without bias": (lambda: nn.Linear(10, 12, bias=False), vector),
    "identity": (lambda: nn.Identity(), vector),
    "mlp, relu": (lambda: nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 5)), vector),
    "mlp, gelu": (lambda: nn.Sequential(nn.Linear(10, 20), nn.GELU(), nn.Linear(20, 5)), vector),
    "mlp, silu": (lambda: nn.Sequential(nn.Linear(10, 20), nn.SiLU(), nn.Linear(20, 5)), vector),
    "mlp, dropout in evaluation": (lambda: nn.Sequential(nn.Linear(10, 9), nn.Dropout(0.5), nn.Tanh()), vector),
    "softmax": (lambda: nn.Softmax(-1), vector),
    "layer norm": (lambda: nn.LayerNorm(10), vector),
    "layer norm over two axes": (lambda: nn.LayerNorm((3, 10)), vector),
    "group norm": (lambda: nn.GroupNorm(2, 4), (1, 4, 5)),
    "batch norm": (lambda: nn.BatchNorm2d(2), image),
    "root mean square norm": (lambda: RootMeanSquare(10), vector),
    "conv1d": (lambda: nn.Conv1d(2, 3, 3, padding=1), (1, 2, 12)),
    "conv2d": (lambda: nn.Conv2d(2, 3, 3), image),
    "conv2d, strided and grouped": (lambda: nn.Conv2d(2, 4, 3, stride=2, groups=2), image),
    "transposed conv2d": (lambda: nn.ConvTranspose2d(2, 3, 2), image),
    "conv, relu, pooling": (lambda: nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.AvgPool2d(2)), image),
    "max pooling": (lambda: nn.MaxPool2d(2), image),
    "bilinear upsampling": (lambda: nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False), image),
    "lstm": (lambda: First(nn.LSTM(8, 6)), sequence),
    "lstm, two layers, both ways": (lambda: First(nn.LSTM(8, 3, 2, bidirectional=True)), sequence),
    "gru": (lambda: First(nn.GRU(8, 6)), sequence),
    "recurrent": (lambda: First(nn.RNN(8, 6)), sequence),
    "attention": (lambda: SelfAttention(), sequence),
    "attention without biases": (lambda: SelfAttention(bias=False), sequence),
    "attention, causal": (lambda: SelfAttention(causal), sequence),
    "attention, boolean mask": (lambda: SelfAttention(causal < 0), sequence),
    "encoder layer, post-norm": (lambda: encoder_layer(), sequence),
    "encoder layer, pre-norm": (lambda: encoder_layer(norm_first=True), sequence),
    "encoder layer, gelu": (lambda: encoder_layer(activation="gelu"), sequence),
    "encoder layer, causal": (lambda: Masked(encoder_layer(), causal), sequence),
    "encoder": (lambda: nn.TransformerEncoder(encoder_layer(), 2), sequence),
    "encoder, causal": (lambda: Masked(nn.TransformerEncoder(encoder_layer(), 2), causal), sequence),
    "writes into what it makes": (lambda: Scatter(), (1, 6)),
    "cosine of tokens": (lambda: nn.Sequential(nn.Linear(10, 6), nn.Softplus(), nn.LogSoftmax(-1)), vector),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["f32", "f64"])
@pytest.mark.parametrize("name", MODULES)
def test_constant_is_the_norm_of_the_dense_jacobian(name, dtype):
    make, shape = MODULES[name]
    torch.manual_seed(3)
    module = make().eval().to(dtype)
    if isinstance(getattr(module, "mask", None), torch.Tensor) and module.mask.is_floating_point():
        module.mask = module.mask.to(dtype)
    x = torch.randn(shape, dtype=dtype)
    exact_module = copy.deepcopy(module).double()
    if getattr(exact_module, "mask", None) is not None and exact_module.mask.is_floating_point():
        exact_module.mask = exact_module.mask.double()
    exact_module.rounds = False
    jacobian = dense_jacobian(exact_module, x.double())
    exact = float(torch.linalg.svdvals(jacobian)[0])
    before = {k: v.clone() for k, v in module.state_dict().items()}
    found = lt.local_constant(module, x)
    assert found.lower == pytest.approx(exact, rel=1e-6)
    assert found.lower <= exact * (1 + 1e-9) and exact <= found.upper_whp * (1 + 1e-9)
    assert found.status == "converged" and found.details["evidence"] == "f64"
    assert all(torch.equal(v, before[k]) for k, v in module.state_dict().items())
    # the witness: the derivative along the direction is as long as lower says
    v = found.direction
    assert v.shape == x.shape and v.dtype == torch.float64 and v.device == x.device
    assert float((jacobian @ v.reshape(-1)).norm() / v.norm()) == pytest.approx(found.lower, rel=1e-9)


def test_there_are_thirty_modules():
    assert len(MODULES) >= 30


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["f32", "f64"])
def test_larger_input_is_enclosed(dtype):
    torch.manual_seed(0)
    module = encoder_layer().eval().to(dtype)
    x = torch.randn(1, 80, 8, dtype=dtype)  # 640 unknowns: more than are decomposed
    exact = dense_norm(copy.deepcopy(module).double(), x.double())
    found = lt.local_constant(module, x, enclose=1.05)
    assert found.lower_by.startswith("golub-kahan")
    assert found.status == "converged"
    assert found.lower == pytest.approx(exact, rel=1e-6)
    assert exact <= found.upper_whp <= 1.05 * found.lower


def enclosures(values, steps, starts):
    """lower and upper_whp at delta = 0.1 from as many starts, through products of torch."""
    values = torch.from_numpy(values)
    x = torch.zeros(1, len(values), dtype=torch.float64)
    jacobian = Jacobian(lambda t: t * values, x)  # once: what differs from start to start is the seed
    for seed in range(starts):
        options = LocalOptions(delta=0.1, tolerance=0.0, max_steps=steps, seed=seed, threads=1)
        found = jacobian_record(
            jacobian, jacobian, options, x=x.numpy(), out_shape=x.shape, dtype="f64", why_not_f64=None, begin=0.0
        )
        yield found.lower, found.upper_whp


def test_enclosure_fails_no_more_often_than_delta_allows():
    steps, starts = 10, 2000
    lower, upper = next(enclosures(np.ones(520), steps, 1))
    epsilon = 1 - (lower / upper) ** 2
    wrong = sum(upper < 1 for _, upper in enclosures(hardest_values(steps, epsilon), steps, starts))
    assert wrong <= 0.1 * starts
    # the test can tell a true bound from a generous one: with half of epsilon the statement would be false
    tighter = math.sqrt(1 - epsilon / 2)
    wrong = sum(lower / tighter < 1 for lower, _ in enclosures(hardest_values(steps, epsilon / 2), steps, 500))
    assert wrong > 0.1 * 500


def test_closure_over_f32_weights_has_evidence_in_f64():
    torch.manual_seed(2)
    weight = torch.randn(10, 10)
    found = lt.local_constant(lambda x: torch.tanh(x @ weight), torch.randn(3, 10))
    assert found.details["evidence"] == "f64" and found.upper_whp is not None


def test_function_that_runs_in_f32_alone_says_so():
    torch.manual_seed(2)
    scripted = torch.jit.script(nn.Linear(10, 4))
    x = torch.randn(3, 10)
    found = lt.local_constant(lambda t: scripted(t), x)
    exact = dense_norm(lambda t: F.linear(t, scripted.weight.double()), x.double())
    assert found.lower == pytest.approx(exact, rel=1e-5)
    assert found.details["evidence"] == "f32" and found.details["why_not_f64"]
    assert found.upper_whp is None and found.upper is None
    with pytest.raises(lipscope.InputError, match=r"enclose=1.05: needs f in f64, and f works in f32 only"):
        lt.local_constant(lambda t: scripted(t), x, enclose=1.05)


def test_writing_into_an_f32_tensor_from_outside_is_no_evidence_in_f64():
    room = torch.zeros(1, 4)

    def f(x):
        room_here = room.clone()  # made inside: widened
        room_here[0, :2] = x[0, :2]
        return room_here * 2

    assert lt.local_constant(f, torch.randn(1, 4)).details["evidence"] == "f64"

    def g(x):
        room.zero_()
        return x * 2 + room

    found = lt.local_constant(g, torch.randn(1, 4))
    assert found.lower == pytest.approx(2, rel=1e-6)
    assert found.details["evidence"] == "f32" and "zero_ writes into a f32 tensor" in found.details["why_not_f64"]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_searched_in_f32_and_testified_in_f64(dtype):
    torch.manual_seed(4)
    module = nn.Sequential(nn.Linear(30, 20), nn.Tanh(), nn.Linear(20, 30)).to(dtype)
    x = torch.randn(20, 30).to(dtype)
    found = lt.local_constant(module, x)
    exact = dense_norm(copy.deepcopy(module).double(), x.double())
    assert found.lower == pytest.approx(exact, rel=1e-6) and found.dtype == "f32"


def test_batch_gives_each_input_its_own_record():
    torch.manual_seed(5)
    module = encoder_layer().eval()
    x = torch.randn(3, 5, 8)
    found = lt.local_constant(module, x, batch=True)
    assert [r.sample for r in found] == [0, 1, 2]
    for i, record in enumerate(found):
        assert record.lower == lt.local_constant(module, x[i : i + 1]).lower
        assert record.direction.shape == (1, 5, 8)
    assert len({r.lower for r in found}) == 3


def test_token_norm_of_a_map_of_tokens_is_that_of_its_matrix():
    torch.manual_seed(6)
    module = nn.Linear(6, 6)
    found = lt.local_constant(module, torch.randn(4, 6), norm="token")
    exact = float(torch.linalg.svdvals(module.weight.double())[0])
    assert found.lower == pytest.approx(exact, rel=1e-6) and found.upper_whp is None
    with pytest.raises(lipscope.InputError, match="4 tokens in x and 1 in f"):
        lt.local_constant(lambda x: module(x).sum(0, keepdim=True), torch.randn(4, 6), norm="token")


def test_inf_norm_is_the_largest_row_sum():
    torch.manual_seed(7)
    module = nn.Linear(6, 5)
    found = lt.local_constant(module, torch.randn(1, 6), norm="inf")
    assert found.lower == pytest.approx(float(module.weight.double().abs().sum(1).max().detach()), rel=1e-9)


def test_scalar_and_constant_functions():
    assert lt.local_constant(torch.sin, torch.tensor(0.5)).lower == pytest.approx(math.cos(0.5), rel=1e-6)
    assert lt.local_constant(lambda x: x.round() + 0 * x, torch.randn(4)).lower == 0


def test_output_chooses_a_value():
    torch.manual_seed(8)
    lstm, x = nn.LSTM(8, 6), torch.randn(5, 8)
    chosen = lt.local_constant(lstm, x, output=0)
    assert chosen.lower == pytest.approx(lt.local_constant(First(lstm), x).lower, rel=1e-12)
    assert lt.local_constant(lambda t: {"a": t, "b": 3 * t}, x, output="b").lower == pytest.approx(3)
    with pytest.raises(lipscope.InputError, match=r"output=2: f returns a tuple of 2 values"):
        lt.local_constant(lstm, x, output=2)


def test_exceptions_of_f_come_out_unchanged():
    class Own(Exception):
        pass

    def f(x):
        raise Own("mine")

    with pytest.raises(Own, match="mine"):
        lt.local_constant(f, torch.randn(3))


class OnceOnly(torch.autograd.Function):
    """A function whose derivative has no derivative."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, u):
        return u * 2


identity, two = nn.Identity(), torch.randn(2, 3)

BAD = {
    "integers": (identity, torch.ones(3, dtype=torch.int64), r"x: int64 has no derivative"),
    "complex": (identity, torch.ones(3, dtype=torch.complex64), r"x: torch.complex64"),
    "an array": (identity, np.ones(3), r"x: expected a torch tensor, got ndarray"),
    "nan": (identity, torch.tensor([1.0, math.nan, math.inf]), r"x: 2 of its 3 numbers are not finite"),
    "empty": (identity, torch.ones(0, 3), r"x: shape \[0, 3\] holds no number"),
    "dtype": (nn.Linear(3, 2).double(), two, r"x: is f32, and f.weight is f64"),
    "on meta": (identity, torch.ones(3, device="meta"), r"x: is on meta, where tensors have no numbers"),
    "device": (nn.Linear(3, 2, device="meta"), two, r"x: is on cpu, and f.weight is on meta"),
    "no function": (3, two, r"f: expected a function or a module, got int"),
    "tuple": (lambda x: (x, x), two, r"f: returns a tuple of 2 values and not one tensor; .*output=0"),
    "dict": (lambda x: {"y": x}, two, r"f: returns a dict with 'y'"),
    "none": (lambda x: None, two, r"f: returns a NoneType"),
    "complex output": (lambda x: x * 1j, two, r"f: returns torch.complex64"),
    "argmax": (lambda x: x.argmax(-1), two, r"f: returns int64 values, which have no derivative"),
    "detached": (lambda x: x.detach() * 2, two, r"output of shape \[2, 3\] does not depend on x of shape \[2, 3\]"),
    "numpy": (lambda x: torch.from_numpy(x.detach().numpy()), two, r"does not depend on x"),
    "empty output": (lambda x: x[:0], two, r"f: returns an empty tensor of shape \[0, 3\]"),
    "infinite output": (lambda x: x / 0, two, r"f: 6 of the 6 numbers of its output are not finite"),
    "dropout": (nn.Sequential(nn.Dropout(0.25)), two, r"f.0: Dropout with p=0.25 is in training mode; call f.eval"),
    "functional dropout": (lambda x: F.dropout(x, 0.5), torch.ones(50), r"f: two runs at the same x differ by 2"),
    "dropout of attention": (SelfAttention(dropout=0.5), torch.randn(1, 5, 8), r"two runs at the same x differ"),
    "running statistics": (nn.BatchNorm1d(3), two, r"f: BatchNorm1d is in training mode, .*running statistics"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(name):
    f, x, message = BAD[name]
    with pytest.raises(lipscope.InputError, match=message):
        lt.local_constant(f, x)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"enclose": 0.9}, "enclose: 0.9; expected a factor above 1"),
        ({"enclose": "nothing"}, "enclose: 'nothing'; expected a factor above 1, None or 'none'"),
        ({"norm": "3"}, "norm: '3'; expected '2', 'inf' or 'token'"),
        ({"norm": "token", "enclose": 1.1}, "enclose: 1.1 with norm 'token'"),
        ({"tolerance": -1.0}, "tolerance: -1.0"),
        ({"max_steps": 0}, "max_steps: 0; expected at least 1"),
        ({"seed": -1}, "seed: -1; expected a whole number from 0 on"),
        ({"delta": 1.0}, "delta: 1.0; expected a probability"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(lipscope.InputError, match=message):
        lt.local_constant(identity, two, **options)


def test_an_empty_batch_and_one_axis_are_refused():
    with pytest.raises(lipscope.InputError, match=r"x: shape \[0, 3\] holds no number"):
        lt.local_constant(identity, torch.ones(0, 3), batch=True)
    with pytest.raises(lipscope.InputError, match=r"x: batch=True needs at least 2 axes, and its shape is \[3\]"):
        lt.local_constant(identity, torch.ones(3), batch=True)


def test_function_that_cannot_be_differentiated_twice_is_named():
    for f in (OnceOnly.apply, lambda x: x.sin() + OnceOnly.apply(x)):
        with pytest.raises(lipscope.RunError, match="f cannot be differentiated twice"):
            lt.local_constant(f, two)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["f32", "f64"])
def test_without_an_enclosure_there_is_a_number_from_above(dtype):
    torch.manual_seed(1)
    w = torch.randn(30, 30, dtype=dtype)
    x = torch.randn(20, 30, dtype=dtype)
    exact = dense_norm(lambda t: torch.tanh(t @ w.double()), x.double())
    plain, enclosed = (lt.local_constant(lambda t: torch.tanh(t @ w), x, enclose=e) for e in (None, 1.2))
    for found in (plain, enclosed):
        assert found.lower == pytest.approx(exact, rel=1e-6) and found.status == "converged"
    assert exact <= enclosed.upper_whp <= 1.2 * exact
    assert exact <= plain.upper_whp


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["f32", "f64"])
def test_enclose_none_says_nothing_from_above_and_finds_the_same(dtype):
    torch.manual_seed(1)
    w = torch.randn(30, 30, dtype=dtype)
    x = torch.randn(20, 30, dtype=dtype)
    plain, alone = (lt.local_constant(lambda t: torch.tanh(t @ w), x, enclose=e) for e in (None, "none"))
    assert alone.upper_whp is None and plain.upper_whp is not None
    assert (alone.lower, alone.steps) == (plain.lower, plain.steps)
    assert alone.parameters["enclose"] == "none"


def test_ctrl_c_ends_a_measurement_by_products_of_torch():
    program = textwrap.dedent("""
        import torch, lipscope.torch as lt
        from lipscope.torch.jacobian import Jacobian
        product, made = Jacobian.apply, 0
        def counted(self, v):
            global made
            made += 1
            if made == 20:
                print("begins", flush=True)
            return product(self, v)
        Jacobian.apply = counted
        torch.manual_seed(0)
        w = torch.randn(200, 200) / 20
        f = lambda x: torch.tanh(x @ w)
        try:
            lt.local_constant(f, torch.randn(100, 200), tolerance=0.0, max_steps=100_000)
        except KeyboardInterrupt:
            print("interrupted", lt.local_constant(f, torch.randn(1, 200)).status, flush=True)
    """)
    run = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert run.stdout.readline() == "begins\n"
    run.send_signal(signal.SIGINT)
    begin = time.monotonic()
    said, _ = run.communicate(timeout=60)
    assert said == "interrupted converged\n" and run.returncode == 0
    # one second on an idle machine; tests run beside others
    assert time.monotonic() - begin < 20


def test_random_state_of_the_caller_is_left_alone():
    torch.manual_seed(9)
    before = torch.random.get_rng_state()
    with pytest.raises(lipscope.InputError):
        lt.local_constant(lambda x: F.dropout(x, 0.5), torch.ones(50))
    assert torch.equal(before, torch.random.get_rng_state())


def test_run_in_f64_is_the_second_run():
    """f runs again in its own precision only where there is no f64 or f64 says something else."""
    seen = []

    def f(x):
        seen.append(x.dtype)
        return torch.tanh(x)

    lt.local_constant(f, two)
    assert seen == [torch.float32, torch.float64]
    seen.clear()
    lt.local_constant(f, two.double())
    assert seen == [torch.float64] * 2

    def coarse(x):  # 1e-6 is lost in f32
        seen.append(x.dtype)
        return ((x * 0 + 1 + 1e-6) - 1) * 1e6 + x

    seen.clear()
    found = lt.local_constant(coarse, two)
    assert seen == [torch.float32, torch.float64, torch.float32] and found.lower == pytest.approx(1)

    def random_in_f32(x):
        return F.dropout(x, 0.5) if x.dtype == torch.float32 else x

    with pytest.raises(lipscope.InputError, match="two runs at the same x differ"):
        lt.local_constant(random_in_f32, torch.ones(50))


def test_search_starts_near_what_f_stretches(monkeypatch):
    """The start holds Jᵀu for a random u; a random vector alone would hold a 30th of the one direction that counts."""
    starts = []
    product = Jacobian.apply

    def recorded(self, v):
        if self.dtype == torch.float32:
            starts.append(v)
        return product(self, v)

    monkeypatch.setattr(Jacobian, "apply", recorded)
    found = lt.local_constant(lambda x: x[:, :1] * 3, torch.randn(1, 900))
    assert found.lower == pytest.approx(3, rel=1e-6) and found.lower_by.startswith("golub-kahan")
    assert abs(starts[0][0]) > 0.5 * np.linalg.norm(starts[0])

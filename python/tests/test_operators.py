"""spectral_norm: arrays, SciPy operators and functions, with evidence on both sides."""

import os
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import lipscope
from conftest import hardest_values


def with_spectrum(rows, cols, values, seed=0):
    """A matrix with these singular values."""
    rng = np.random.default_rng(seed)
    k = len(values)
    u = np.linalg.qr(rng.standard_normal((rows, k)))[0]
    v = np.linalg.qr(rng.standard_normal((cols, k)))[0]
    return np.ascontiguousarray((u * values) @ v.T)


def encloses(found, a, tolerance=1e-6):
    exact = np.linalg.norm(a.astype(np.float64), 2)
    v = found.direction
    assert v.shape == (a.shape[1],)
    assert np.linalg.norm(a.astype(np.float64) @ v) / np.linalg.norm(v) == pytest.approx(found.lower, rel=1e-12)
    assert found.lower == pytest.approx(exact, rel=tolerance)
    assert found.lower <= exact * (1 + 1e-12)
    for above in (found.upper, found.upper_whp):
        assert above is None or above >= exact * (1 - 1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (40, 700), (900, 600), (1500, 513)])
def test_norm_of_an_array_is_enclosed(shape, dtype):
    a = np.random.default_rng(1).standard_normal(shape).astype(dtype)
    found = lipscope.spectral_norm(a, enclose=1.2, max_steps=600)
    assert found.status == "converged" and found.shape == shape
    encloses(found, a)
    assert found.upper_whp <= 1.2 * found.lower


@pytest.mark.parametrize("form", ["C", "F", "every other", "transposed", "backwards", "read-only"])
def test_every_layout_of_memory_is_read_as_it_lies(form):
    a = np.random.default_rng(2).standard_normal((620, 700))
    if form == "F":
        a = np.asfortranarray(a)
    elif form == "every other":
        a = np.random.default_rng(2).standard_normal((1240, 1400))[::2, ::2]
    elif form == "transposed":
        a = a.T
    elif form == "backwards":
        a = a[::-1, ::-1]
    elif form == "read-only":
        a.flags.writeable = False
    encloses(lipscope.spectral_norm(a, tolerance=1e-8), a)


def test_an_array_an_operator_and_functions_agree():
    a = with_spectrum(800, 650, [3.0, 2.9, 1.0, 0.5])
    array = lipscope.spectral_norm(a)
    op = lipscope.spectral_norm(scipy.sparse.linalg.aslinearoperator(scipy.sparse.csr_matrix(a)))
    assert op.lower == pytest.approx(array.lower, rel=1e-12)
    assert array.lower == pytest.approx(3.0, rel=1e-9)
    functions = lipscope.spectral_norm((lambda v: a @ v, lambda u: a.T @ u), shape=a.shape)
    again = lipscope.spectral_norm((lambda v: a @ v, lambda u: a.T @ u), shape=a.shape)
    assert functions.lower == again.lower and np.array_equal(functions.direction, again.direction)


def test_functions_in_f32_get_f32():
    a = np.random.default_rng(3).standard_normal((700, 600)).astype(np.float32)
    seen = set()

    def matvec(v):
        seen.add(v.dtype)
        return a @ v

    found = lipscope.spectral_norm((matvec, lambda u: a.T @ u), shape=a.shape, dtype=np.float32)
    assert seen == {np.dtype(np.float32)}
    assert found.lower == pytest.approx(np.linalg.norm(a.astype(float), 2), rel=1e-5)


@pytest.mark.parametrize("norm", ["2", "inf"])
@pytest.mark.parametrize("size", [12, 700])  # formed and decomposed; found by iteration
def test_functions_in_f32_say_nothing_from_above(norm, size):
    a = np.random.default_rng(3).standard_normal((size, 600)).astype(np.float32)
    found = lipscope.spectral_norm((lambda v: a @ v, lambda u: a.T @ u), shape=a.shape, dtype=np.float32, norm=norm)
    exact = np.linalg.norm(a.astype(float), 2 if norm == "2" else np.inf)
    assert found.lower == pytest.approx(exact, rel=1e-5)
    assert (found.upper, found.upper_by, found.upper_whp) == (None, None, None)
    with pytest.raises(ValueError, match=r"enclose: 1.1 needs functions in float64"):
        lipscope.spectral_norm((lambda v: a @ v, lambda u: a.T @ u), shape=a.shape, dtype=np.float32, enclose=1.1)


def test_functions_may_keep_what_they_get():
    kept = []

    def matvec(v):
        kept.append(v)
        return 2 * v

    lipscope.spectral_norm((matvec, lambda u: 2 * u), shape=(600, 600))
    assert all(np.linalg.norm(v) == pytest.approx(1) for v in kept)


def test_inf_norm_is_the_largest_row_sum():
    a = np.random.default_rng(4).standard_normal((30, 50))
    for op in (a, scipy.sparse.linalg.aslinearoperator(a)):
        found = lipscope.spectral_norm(op, norm="inf")
        assert found.lower == pytest.approx(np.abs(a).sum(axis=1).max(), rel=1e-13)
        assert np.abs(a @ found.direction).max() == pytest.approx(found.lower, rel=1e-13)
        assert found.upper >= found.lower


def test_token_norm_is_reached_by_unit_tokens():
    a = np.random.default_rng(5).standard_normal((4 * 6, 4 * 5))
    found = lipscope.spectral_norm(a, norm="token", tokens=4)
    v = found.direction.reshape(4, 5)
    assert np.linalg.norm(v, axis=1) == pytest.approx(np.ones(4))
    assert np.linalg.norm((a @ found.direction).reshape(4, 6), axis=1).max() == pytest.approx(found.lower)
    # one token alone is less
    assert found.lower > max(np.linalg.norm(a.reshape(4, 6, 4, 5)[i, :, j, :], 2) for i in range(4) for j in range(4))


def enclosures(values, steps, starts):
    """lower and upper_whp at delta = 0.1 from as many starts, through functions of Python."""
    functions = (lambda v: values * v, lambda u: values * u)
    for seed in range(starts):
        found = lipscope.spectral_norm(
            functions, shape=(len(values),) * 2, delta=0.1, tolerance=0.0, max_steps=steps, seed=seed, threads=1
        )
        yield found.lower, found.upper_whp


def test_enclosure_fails_no_more_often_than_delta_says():
    steps, starts = 10, 3000
    lower, upper = next(enclosures(np.ones(520), steps, 1))
    epsilon = 1 - (lower / upper) ** 2
    wrong = sum(upper < 1 for _, upper in enclosures(hardest_values(steps, epsilon), steps, starts))
    assert wrong <= 0.1 * starts
    # the test can tell a true bound from a generous one: with half of epsilon the statement would be false
    tighter = np.sqrt(1 - epsilon / 2)
    wrong = sum(lower / tighter < 1 for lower, _ in enclosures(hardest_values(steps, epsilon / 2), steps, 500))
    assert wrong > 0.1 * 500


class Broken(Exception):
    pass


def test_a_lower_number_above_an_upper_one_is_no_answer():
    """Functions whose last product is ten times too large: no operator does that, and no number is returned."""
    sizes = np.linspace(1, 2, 700)
    calls = 0
    wrong_from = float("inf")

    def matvec(v):
        nonlocal calls
        calls += 1
        return sizes * v * (10 if calls >= wrong_from else 1)

    lipscope.spectral_norm((matvec, lambda u: sizes * u), shape=(700, 700), enclose=1.2)
    wrong_from, calls = calls, 0
    with pytest.raises(lipscope.Violation, match="from below exceeds"):
        lipscope.spectral_norm((matvec, lambda u: sizes * u), shape=(700, 700), enclose=1.2)


def test_what_a_function_raises_comes_out_unchanged():
    thrown = Broken("here")

    def matvec(v):
        raise thrown

    with pytest.raises(Broken) as caught:
        lipscope.spectral_norm((matvec, matvec), shape=(3, 3))
    assert caught.value is thrown


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: lipscope.spectral_norm(np.zeros((3, 3), dtype=np.float16)), ValueError, "op: expected float32 or float64, got float16"),
        (lambda: lipscope.spectral_norm(np.zeros((3, 3), dtype=complex)), ValueError, "complex128"),
        (lambda: lipscope.spectral_norm(np.zeros(3)), ValueError, r"op: expected 2 axes, got 1 in shape \[3\]"),
        (lambda: lipscope.spectral_norm(np.zeros((0, 3))), ValueError, r"empty array of shape \[0, 3\]"),
        (lambda: lipscope.spectral_norm(np.array([[1.0, 2.0], [3.0, np.nan]])), ValueError, r"op: entry \[1, 1\] is nan"),
        (lambda: lipscope.spectral_norm([[1.0]]), TypeError, "op: expected an array .* got list"),
        (lambda: lipscope.spectral_norm((np.sin, np.cos)), TypeError, "shape"),
        (lambda: lipscope.spectral_norm((lambda v: v[:2], lambda u: u), shape=(3, 3)), ValueError, "matvec: returned 2 numbers, expected 3"),
        (lambda: lipscope.spectral_norm((lambda v: v, lambda u: -u), shape=(3, 3)), ValueError, "not the adjoint"),
        (lambda: lipscope.spectral_norm((lambda v: 1j * v, lambda u: u), shape=(3, 3)), ValueError, "matvec: returned complex128"),
        (lambda: lipscope.spectral_norm((lambda v: v * np.nan, lambda u: u), shape=(3, 3)), ValueError, "not finite"),
        (lambda: lipscope.spectral_norm(np.eye(3), enclose=0.5), ValueError, "enclose: .* got 0.5"),
        (lambda: lipscope.spectral_norm(np.eye(3), norm="1"), ValueError, "norm"),
        (lambda: lipscope.spectral_norm(np.eye(3), seed=-1), ValueError, "seed: expected 0 or more, got -1"),
        (lambda: lipscope.spectral_norm(np.eye(3), max_steps=0), ValueError, "max_steps: expected 1 or more, got 0"),
        (lambda: lipscope.spectral_norm(None), TypeError, "op: expected an array, .* got None"),
        (lambda: lipscope.spectral_norm(np.eye(3), norm="token"), ValueError, "tokens"),
        (lambda: lipscope.spectral_norm(np.eye(600), delta=2.0), ValueError, "delta 2 is not between"),
        (lambda: lipscope.spectral_norm(np.eye(4), norm="token", tokens=3), ValueError, "3 tokens"),
    ],
)  # fmt: skip
def test_refusals_name_the_argument_and_what_was_given(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_a_torch_tensor_is_read_where_it_lies():
    torch = pytest.importorskip("torch")
    w = torch.nn.Linear(600, 550).weight
    assert w.requires_grad
    exact = float(torch.linalg.matrix_norm(w.double(), 2))
    assert lipscope.spectral_norm(w, tolerance=1e-6).lower == pytest.approx(exact, rel=1e-6)


def peak_growth(code):
    """How many megabytes the peak of the memory grew in `action` of a program of its own."""
    program = textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return float(done.stdout)


def test_an_array_is_not_copied():
    grown = peak_growth("""
        import resource, numpy as np, lipscope
        a = np.full((4096, 8192), 1e-3)  # 256 MB
        lipscope.spectral_norm(np.eye(600))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found = lipscope.spectral_norm(a)
        print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
        assert abs(found.lower / (1e-3 * (4096 * 8192) ** 0.5) - 1) < 1e-9
    """)
    assert grown < 100


def test_python_goes_on_while_an_array_is_measured():
    """A second thread of Python counts meanwhile: it could not if the GIL were held."""
    counted = 0
    ended = threading.Event()

    def count():
        nonlocal counted
        while not ended.is_set():
            counted += 1
            time.sleep(0.001)

    a = np.random.default_rng(6).standard_normal((2500, 2500))
    thread = threading.Thread(target=count)
    thread.start()
    before = counted
    lipscope.spectral_norm(a, tolerance=1e-12, max_steps=60)
    during = counted - before
    ended.set()
    thread.join()
    assert during >= 20


@pytest.mark.big
@pytest.mark.skipif("LIPSCOPE_BIG" not in os.environ, reason="LIPSCOPE_BIG allows tests that take gigabytes")
def test_a_gigabyte_is_not_copied():
    grown = peak_growth("""
        import resource, numpy as np, lipscope
        a = np.full((11585, 11585), 1e-3)  # 1 GB
        lipscope.spectral_norm(np.eye(600))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        lipscope.spectral_norm(a)
        print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
    """)
    assert grown < 100

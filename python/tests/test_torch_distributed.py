"""Data-parallel training of a model with a promised constant, by two processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import lipscope.torch as lt  # noqa: E402

STEPS, CONSTANT, N = 4, 3.0, 5


def make(seed):
    torch.manual_seed(seed)
    return torch.nn.Sequential(lt.Residual(lt.L2SelfAttention(8, 2, bias=True)), torch.nn.Linear(8, 3)).double()


def data():
    numbers = torch.Generator().manual_seed(7)
    x = torch.randn(STEPS, 4, N, 8, dtype=torch.float64, generator=numbers)
    return x, torch.randint(3, (STEPS, 4, N), generator=numbers)


def train(model, x, y, promise):
    optimiser = torch.optim.SGD(model.parameters(), lr=2.0)
    for inputs, labels in zip(x, y):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs).flatten(0, 1), labels.flatten()).backward()
        optimiser.step()
        promise()


def one_rank(rank, folder):
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    model = make(rank)  # other weights on each rank: those of rank 0 are sent to both
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    promise = lt.Promise(model, CONSTANT, N)
    x, y = data()
    train(parallel, x[:, 2 * rank : 2 * rank + 2], y[:, 2 * rank : 2 * rank + 2], promise)
    torch.save({"weights": model.state_dict(), "upper": promise.proof.upper}, f"{folder}/rank-{rank}")
    dist.destroy_process_group()


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no torch.distributed")
def test_both_ranks_keep_the_promise_with_the_same_weights(tmp_path):
    command = [sys.executable, Path(__file__), str(tmp_path)]
    ranks = [subprocess.Popen([*command, str(rank)], env={**os.environ, "OMP_NUM_THREADS": "1"}) for rank in range(2)]
    assert [rank.wait(timeout=120) for rank in ranks] == [0, 0]
    first, second = (torch.load(tmp_path / f"rank-{rank}") for rank in range(2))
    assert first["upper"] == second["upper"] <= CONSTANT
    assert all(torch.equal(w, second["weights"][name]) for name, w in first["weights"].items())

    alone = make(0)
    promise = lt.Promise(alone, CONSTANT, N)
    train(alone, *data(), promise)
    for name, weight in alone.state_dict().items():
        assert torch.allclose(weight, first["weights"][name], atol=1e-9), name

    free = make(0)  # without the promise these steps lead out of it
    train(free, *data(), lambda: None)
    assert lt.proved_bound(free, N).upper > CONSTANT


if __name__ == "__main__":
    one_rank(int(sys.argv[2]), sys.argv[1])

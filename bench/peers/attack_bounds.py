"""Attacks the bounds of lipscope.torch: the largest constant found of random modules over what is proved of each.

    PYTHONPATH=build/release/python python bench/peers/attack_bounds.py --from 0 --to 10000

A case is a module of one of the four kinds with random weights, a random input, mask and norm; a gradient ascent on the
norm of its Jacobian looks for a stronger reaction (python/tests/test_torch_bound.py, which runs a few of them).
"""

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python" / "tests"))

from test_torch_bound import attack  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--from", dest="first", type=int, default=0)
parser.add_argument("--to", dest="last", type=int, default=10000)
given = parser.parse_args()

worst, at = 0.0, None
for seed in range(given.first, given.last):
    share = attack(seed)
    if share > worst:
        worst, at = share, seed
    if (seed + 1 - given.first) % 500 == 0 or seed + 1 == given.last:
        print(f"{seed + 1 - given.first} modules: at most {worst:.4f} of what is proved (case {at})", flush=True)
sys.exit(worst > 1.0 + 1e-9)

"""Headlines of certify, train and compare state a result: worked out again from the records."""

import math
import random
import re
import subprocess

import expected
import records as made
from page_case import PageCase, program


def positions(proved, attacked, **more):
    """One record for each position of a text; None where nothing is proved, or found."""
    return [made.record(command="certify", map="model", layer=None, mask="causal", n=k + 1, sample=k, lower=low,
                        upper=up, upper_log10=None if up is None else math.log10(up), upper_by="attack", **more)
            for k, (low, up) in enumerate(zip(proved, attacked))]


class CertifyTest(PageCase):
    def test_both_curves_fall_and_say_the_share_that_holds(self):
        self.show(made.certified())
        # radii are no constants, and are not said to be
        self.assertNotIn("come out", self.text("#top"))
        proved, unbroken = self.points("certify-chart")
        self.assertEqual([[round(10**x, 6), y] for x, y in proved[1:-1]], [[0.01, 80], [0.02, 60], [0.03, 40], [0.04, 20]])
        self.assertEqual([[round(10**x, 6), y] for x, y in unbroken[1:-1]],
                         [[0.1, 80], [0.2, 60], [0.3, 40], [0.4, 20], [0.5, 0]])
        self.assertEqual([proved[0][1], proved[-1][1], unbroken[0][1], unbroken[-1][1]], [80, 0, 100, 0])
        for curve in (proved, unbroken):
            self.assertEqual([y for _, y in curve], sorted((y for _, y in curve), reverse=True))
            self.assertEqual([x for x, _ in curve], sorted(x for x, _ in curve))
        self.assertIn("at least those that are proved to hold, at most those that the attack has not broken. "
                      "Between the two curves nothing is known.", self.text("#certify"))

    def share_at(self, curve, stepped, x):
        """What the drawn line shows over x, off its corners."""
        for (x0, y0), (x1, y1) in zip(curve, curve[1:]):
            if x0 < x < x1:
                # "after" drops at the left end, "before" at the right
                return y1 if stepped == "after" else y0
        raise AssertionError(x)

    def test_curves_are_the_shares_of_the_records_and_do_not_cross(self):
        rng = random.Random(5)
        radii = [rng.uniform(0.001, 0.1) for _ in range(37)]
        records = positions([r if k % 9 else None for k, r in enumerate(radii)], [r * rng.uniform(1, 30) if k % 7 else None for k, r in enumerate(radii)])
        self.show(records)
        proved, unbroken = self.points("certify-chart")
        steps = self.browser.run("return Chart.getChart('certify-chart').data.datasets.map(d => d.stepped)")
        ends = [proved[0][0], proved[-1][0]]
        for _ in range(200):
            x = rng.uniform(*ends)
            held = self.share_at(proved, steps[0], x)
            stands = self.share_at(unbroken, steps[1], x)
            self.assertAlmostEqual(held, 100 * sum(r["lower"] is not None and r["lower"] >= 10**x for r in records) / 37)
            self.assertAlmostEqual(stands, 100 * sum(r["upper"] is None or r["upper"] > 10**x for r in records) / 37)
            self.assertLessEqual(held, stands)

    def said(self, records, next_one=""):
        proved = expected.median([r["lower"] or 0.0 for r in records])
        attacked = expected.median([math.inf if r["upper"] is None else r["upper"] for r in records])
        share = sum(r["lower"] is not None for r in records) / len(records)
        return (f"a radius is proved at {float(f'{100 * share:.3g}'):g} % of {expected.count_of(len(records), 'position')}, "
                f"of median {expected.shown(proved, 5)}{next_one}; the attack breaks "
                + ("at most half of the predictions" if attacked == math.inf else f"a prediction at a median of {expected.shown(attacked, 5)}"))

    def test_headline_has_the_median_and_the_share(self):
        rng = random.Random(6)
        for size in (1, 2, 3, 4, 11, 20):
            for missing in (0, 1, size // 2 + 1):
                proved = [rng.uniform(0.005, 0.5) if k >= missing else None for k in range(size)]
                attacked = [rng.uniform(0.5, 5.0) if k < size - missing else None for k in range(size)]
                records = positions(proved, attacked)
                with self.subTest(size=size, missing=missing):
                    self.show(records)
                    if all(r["lower"] is None and r["upper"] is None for r in records):
                        continue
                    self.assertEqual(self.text("h1"), expected.capital(self.said(records)) + ".")

    def test_the_model_that_holds_furthest_is_named_with_the_ratio(self):
        near = positions([0.01, 0.03], [0.1, 0.2], model="runs/near")
        far = positions([0.1, 0.2], [0.4, 0.6], model="runs/far")
        self.show(near + far)
        self.assertEqual(self.text("h1"), f"Of 2 sets of predictions, far holds furthest: {self.said(far, ', 7.5 times that of the next, near')}.")

    def test_two_texts_are_two_groups(self):
        texts = [{"from": "text", "name": name, "sha256": "00", "offset": 0} for name in ("one.txt", "two.txt")]
        attacked = [0.5, 0.6, 0.7, 0.8]
        self.show(positions([0.01, 0.02, 0.03, 0.04], attacked, input=texts[0]) + positions([0.05, 0.1, 0.2, 0.3], attacked, input=texts[1]))
        self.assertEqual(self.legend("certify-chart"), ["one.txt: proved to hold", "one.txt: not broken by the attack",
                                                        "two.txt: proved to hold", "two.txt: not broken by the attack (coincides with one.txt: not broken by the attack)"])

    def test_the_program_prints_the_medians_of_the_page(self):
        text = self.folder / "text.txt"
        text.write_text("a river runs by the hill. " * 40, encoding="utf-8")
        run = lambda *arguments: subprocess.run([program(), *map(str, arguments)], capture_output=True, text=True, check=True).stdout
        run("train", text, "--out", self.folder / "l2", "--model", "l2", "--norm", "none", "--layers", 1, "--width", 8, "--heads", 2,
            "--context", 8, "--batch", 4, "--steps", 10, "--eval-every", 10, "--threads", 1, "--measure", 0, "--quiet")
        for count in (2, 7, 10):
            records = self.folder / f"{count}.jsonl"
            printed = run("certify", self.folder / "l2", "--text", text, "--split", "test", "--positions", count, "--quiet", "--out", records)
            page = self.folder / f"{count}.html"
            run("report", records, "--out", page, "--quiet")
            self.browser.open(page)
            line = re.search(r"^\s*median\s+(\S+)\s+(\S+)", printed, re.M)
            found = re.search(r"median (\S+); the attack breaks a prediction at a median of (\S+)\.$", self.text("h1"))
            for a, b in zip(line.groups(), found.groups()):
                self.assertEqual(float(a), float(b.replace("·10⁻", "e-").translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789"))))


class TrainTest(PageCase):
    def test_a_run_says_its_losses(self):
        self.show(made.run("runs/l2", {20: 3.2, 40: 2.8, 60: 2.9}, test=2.75))
        self.assertEqual(self.text("h1"), "The run l2 learnt to 2.75 nats a character on the test text, with the weights of step 40, "
                         "where the validation loss was least (2.8).")
        self.show(made.run("runs/l2", {20: 3.2, 40: 2.8, 60: 2.9}))
        self.assertEqual(self.text("h1"), "The run l2 learnt to 2.8 nats a character on the validation text, at step 40.")

    def test_the_best_of_several_runs_and_by_how_much(self):
        runs = {"runs/a": 2.75, "runs/b": 2.5, "runs/c": 2.61}
        self.show([r for name, loss in runs.items() for r in made.run(name, {20: 3.2, 40: loss + 0.1}, test=loss)])
        self.assertEqual(self.text("h1"), "Of 3 runs, b is best: 2.5 nats a character on the test text, 0.11 less than the next, c.")
        self.assertEqual([[p[1] for p in curve] for curve in self.points("runs-chart")], [[3.2, 2.85], [3.2, 2.6], [3.2, 2.71]])

    def test_runs_that_tie_are_both_named(self):
        self.show(made.run("runs/a", {20: 3.0}, test=2.5) + made.run("runs/b", {20: 3.1}, test=2.5))
        self.assertEqual(self.text("h1"), "Of 2 runs, a and b are best, equally: 2.5 nats a character on the test text.")

    def test_a_promise_is_kept_or_broken_by_its_largest_constant(self):
        kept = made.run("runs/a", {20: 3.0}, test=2.5, promised={10: (99.5, 100.0), 20: (90.0, 100.0)})
        self.show(kept)
        self.assertTrue(self.text("h1").endswith(" Promise kept: the constant of a was at most 99.5, promised 100."), self.text("h1"))
        self.show(made.run("runs/a", {20: 3.0}, test=2.5, promised={10: (104.0, 100.0), 20: (90.0, 100.0)}))
        self.assertTrue(self.text("h1").endswith(" Promise BROKEN: the constant of a was at most 104, promised 100."), self.text("h1"))


class CompareTest(PageCase):
    def pair(self, factors, **other):
        """Two files of the same questions; the second reacts so many times as strongly."""
        first = [made.record(layer=k, lower=2.0 + k) for k in range(len(factors))]
        second = [{**r, "lower": r["lower"] * f, **other} for r, f in zip(first, factors)]
        self.show(first, second, command="compare")

    def test_pairs_the_same_questions(self):
        first = made.audit()
        second = [{**r, "kind": "l2", "lower": r["lower"] / 8} if "lower" in r else r for r in first][::2]
        self.show(first, second, command="compare")
        pairs = sum(r["command"] == "measure" for r in second)
        self.assertRegex(self.text("h1"), f"^Dot-product attention reacts more strongly than L2 attention \\(tied\\) in all of {pairs} pairs: "
                         r"8 times as strongly at most \(.*\), 8 times in the median\.$")
        points = self.points("compare-chart")[0]
        self.assertEqual(len(points), pairs)
        for x, y in points:
            self.assertAlmostEqual(x - y, math.log10(8), delta=1e-5)

    def test_says_how_many_differ_and_the_largest_ratio_on_either_side(self):
        self.pair([2.0, 3.0, 1.0, 0.2, 5.0, 0.5], kind="l2")
        self.assertEqual(self.text("h1"), "L2 attention (tied) reacts more strongly than dot-product attention in 3 of 6 pairs: "
                         "5 times as strongly at most (layer 4, 8 tokens, sample 0), 1.5 times in the median.")
        self.assertIn("In 2 pairs dot-product attention reacts more strongly, 5 times at most (layer 3, 8 tokens, sample 0).", self.text("header"))
        cells = dict(zip([f"layer {k}" for k in range(6)], self.texts("#compare .heat .cell")))
        self.assertEqual(cells, {"layer 0": "2.00 ▲", "layer 1": "3.00 ▲", "layer 2": "=", "layer 3": "5.00 ▼", "layer 4": "5.00 ▲", "layer 5": "2.00 ▼"})

    def test_says_that_all_agree(self):
        self.pair([1.0] * 4, seed=1)
        self.assertEqual(self.text("h1"), "Seed 1 reacts as seed 0 does in all 4 pairs.")

    def test_random_pairs_against_the_records(self):
        rng = random.Random(7)
        for size in (1, 2, 5, 8):
            factors = [float(f"{10 ** rng.uniform(-1, 1):.4g}") for _ in range(size)]
            self.pair(factors, kind="l2")
            up = [f for f in factors if f > 1]
            stronger = [f for f in factors if f > 1] if 2 * len(up) >= size else [1 / f for f in factors if f < 1]
            largest = self.text("h1 .number")
            self.assertAlmostEqual(float(largest.split()[0]) / max(stronger), 1, delta=6e-3)
            middle = re.search(r"([\d.]+) times in the median", self.text("h1"))
            median = expected.median(factors if 2 * len(up) >= size else [1 / f for f in factors])
            self.assertEqual(middle is not None, median >= 1)
            if middle:
                self.assertAlmostEqual(float(middle[1]) / median, 1, delta=6e-3)

    def test_every_ratio_is_at_least_one(self):
        self.pair([2.0, 0.5, 0.25, 3.0], kind="l2")
        self.browser.run("document.querySelector('#compare details').open = true")
        self.browser.settle()
        shown = self.texts("#compare .heat .cell") + self.texts("#compare details td:last-child")
        self.assertEqual(len(shown), 8)
        for ratio in shown:
            self.assertGreaterEqual(float(ratio.split()[0]), 1)

    def test_two_kinds_in_each_file_are_not_mixed(self):
        first = [made.record(lower=2.0), made.record(lower=30.0, kind="l2")]
        second = [{**r, "lower": 2 * r["lower"], "model": "other/"} for r in reversed(first)]
        self.show(first, second, command="compare")
        self.assertEqual(sorted([round(10**x), round(10**y)] for x, y in self.points("compare-chart")[0]), [[2, 4], [30, 60]])

    def test_the_two_are_named_by_what_tells_them_apart(self):
        text = lambda name: {"from": "text", "name": name, "sha256": "00", "offset": 0}
        for other, names in [({"model": "runs/b"}, ("Model b", "model tiny")), ({"kind": "l2"}, ("L2 attention (tied)", "dot-product attention")),
                             ({"input": text("books/b.txt")}, ("The model on b.txt", "the model on a.txt")), ({"seed": 3}, ("Seed 3", "seed 0"))]:
            first = [made.record(lower=2.0, input=text("books/a.txt"))]
            self.show(first, [{**first[0], "lower": 6.0, **other}], command="compare")
            self.assertEqual(self.text("h1"), f"{names[0]} reacts more strongly than {names[1]} in 1 of 1 pair: "
                             "3 times as strongly at most (layer 0, 8 tokens, sample 0), 3 times in the median.")

    def test_two_runs_are_compared_by_what_they_came_to(self):
        self.show(made.run("runs/a", {20: 3.0}, test=2.6), made.run("runs/b", {20: 3.1}, test=2.5), command="compare")
        self.assertEqual(self.text("h1"), "Of 2 runs, b is best: 2.5 nats a character on the test text, 0.1 less than the next, a.")
        self.show(positions([0.01], [0.1], model="runs/a"), positions([0.02], [0.1], model="runs/b"), command="compare")
        self.assertIn("Of 2 sets of predictions, b holds furthest", self.text("h1"))

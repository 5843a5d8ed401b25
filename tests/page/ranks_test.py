"""Every sentence of the page that states a rank or an extreme, against the records themselves."""

import json
import random
import subprocess

import expected
import records as made
from page_case import PageCase, program


def measured(lower, layer=0, head="all", **more):
    """A measurement; upper and upper_whp as factors of lower."""
    upper, likely = more.pop("upper", None), more.pop("whp", None)
    return made.record(layer=layer, head=head, lower=lower, upper=upper and upper * lower, upper_whp=likely and likely * lower,
                       upper_by="split_paths" if upper else None, **more)


def drawn(draw, layers, heads, lengths=(8,), samples=1, digits=4, **more):
    """Constants drawn at random, of every layer, head, length and sample."""
    rng = random.Random(draw)
    return [measured(float(f"{rng.uniform(1, 50):.{digits}g}"), layer, head, n=n, sample=s, **more)
            for layer in layers for head in heads for n in lengths for s in range(samples)]


def text(name):
    return {"from": "text", "name": name, "sha256": "cd" * 32, "offset": 0}


# what one page shows: the records of one view
SETS = {
    "heads of several layers": drawn(1, range(6), range(12), upper=1.5),
    # the layers of the winning head would rank otherwise
    "the winning head is weak elsewhere": [measured(20.0, 0, 0), measured(1.0, 1, 0), measured(2.0, 2, 0), measured(3.0, 3, 0),
                                           measured(19.0, 0, 1), measured(18.0, 1, 1), measured(17.0, 2, 1), measured(0.5, 3, 1)],
    "layers and heads": drawn(2, range(4), ["all", 0, 1, 2], lengths=(4, 8), samples=2, whp=1.05),
    "a head above every layer": [measured(5.0, 0), measured(4.0, 1), measured(9.0, 0, 0), measured(2.0, 0, 1), measured(1.0, 1, 0)],
    "many samples": drawn(3, range(3), ["all"], lengths=(4, 8, 16), samples=5, upper=3.0, whp=1.2),
    "one record": [measured(3.25)],
    "one place, several inputs": drawn(4, [2], ["all"], lengths=(4, 8), samples=3, upper=2.0),
    "two of two": drawn(5, range(2), ["all"]),
    "three of three": drawn(6, range(3), ["all"]),
    "two at the top": [measured(7.0, 0), measured(3.0, 1), measured(7.0, 2), measured(2.0, 3), measured(1.0, 4)],
    "five at the top": [measured(7.0, k) for k in range(5)] + [measured(1.5, 5), measured(1.25, 6)],
    "all alike": [measured(4.0, k, n=8, sample=s) for k in range(4) for s in range(2)],
    "ties below": drawn(7, range(5), range(6), digits=1),
    "two at the end": [measured(9.0, 0), measured(8.0, 1), measured(7.0, 2), measured(1.0, 3), measured(1.0, 4)],
    "some without a number": [measured(None, 0), measured(6.0, 1), measured(2.0, 2), measured(None, 3), measured(1.0, 4)],
    "whp above the proved": [measured(6.0, 0, upper=1.1, whp=1.4), measured(5.0, 1)],
    "whp below the proved": [measured(6.0, 0, upper=1.9, whp=1.4), measured(5.0, 1)],
    "no layer": drawn(8, [None], ["all", 0, 1, 2, 3], lengths=(5, 6)),
    "with a text": drawn(9, range(3), ["all"], input=text("alice.txt")),
}


class RanksTest(PageCase):
    def check(self, records):
        self.assertEqual(self.text("h1"), expected.headline(records))
        self.assertEqual(self.texts(".facts .ranks"), expected.rank_sentences(records))
        rows = self.browser.run("return [...document.querySelectorAll('#largest tbody tr')].map(r => [...r.cells].map(c => c.textContent))")
        known = [r for r in records if r["lower"] is not None]
        if len(known) > 1:
            self.assertEqual([tuple(r[1:5]) for r in rows], expected.top_ten(records))
        else:
            self.assertEqual(rows, [])

    def test_first_sentence_ranks_and_top_ten_are_those_of_the_records(self):
        for name, records in SETS.items():
            with self.subTest(name):
                self.show(records)
                self.check(records)

    def test_cells_of_the_map_hold_the_largest_of_each(self):
        records = SETS["layers and heads"]
        self.show(records)
        cells = self.browser.run("return [...document.querySelectorAll('.heat .cell')].map(c => [c.title, c.textContent])")
        largest = expected.places(records)
        self.assertEqual(len(cells), len(largest))
        for r in largest:
            found = [words for title, words in cells if title.startswith(f"{expected.capital(expected.place(r))}:")]
            self.assertEqual(len(found), 1)
            self.assertAlmostEqual(float(found[0]) / r["lower"], 1, delta=6e-3)

    def test_gap_is_drawn_at_the_worst_input_of_each(self):
        records = SETS["many samples"]
        self.show(records)
        below, _, above, _ = self.points("gap-chart")
        names = self.browser.run("return Chart.getChart('gap-chart').data.labels")
        self.assertEqual(len(names), 3)
        for r in expected.places(records):
            k = names.index(expected.capital(expected.place(r)))
            self.assertAlmostEqual(10 ** below[k] / r["lower"], 1, delta=1e-6)
            self.assertAlmostEqual(10 ** above[k] / r["upper"], 1, delta=1e-6)

    def test_what_was_asked_differently_is_not_ranked_together(self):
        """Models, maps, kinds, norms, seeds, parameters and texts: each view is ranked by itself."""
        parts = [
            drawn(10, range(3), ["all"], samples=4, input=text("a.txt")),
            drawn(11, range(3), ["all"], input=text("b.txt")),
            drawn(12, range(3), ["all"], input=text("a.txt"), model="other/"),
            drawn(13, range(3), ["all"], input=text("a.txt"), map="core"),
            drawn(14, range(3), ["all"], input=text("a.txt"), kind="l2"),
            drawn(15, range(3), ["all"], input=text("a.txt"), seed=7),
            drawn(16, range(3), ["all"], input=text("a.txt"), parameters={"tau": 3.0}),
            drawn(17, range(3), ["all"], input=text("a.txt"), parameters={"tau": 5.0}),
        ]
        mixed = [r for part in parts for r in part]
        random.Random(0).shuffle(mixed)
        parts = [[r for r in mixed if any(r is of for of in part)] for part in parts]
        self.show(mixed)
        options = self.browser.run("return [...document.querySelector('main > .controls select').options].map(o => o.textContent)")
        self.assertEqual(len(options), len(parts))
        self.assertEqual(len(set(options)), len(parts), options)
        seen = set()
        for k in range(len(parts)):
            self.browser.run("""const list = document.querySelector('main > .controls select');
                                list.selectedIndex = arguments[0]; list.dispatchEvent(new Event('change'))""", k)
            said = self.text("h1")
            which = [j for j, part in enumerate(parts) if expected.headline(part) == said]
            self.assertEqual(len(which), 1, said)
            self.check(parts[which[0]])
            seen.add(which[0])
        self.assertEqual(len(seen), len(parts))

    def test_what_one_run_of_the_program_measures_is_one_view(self):
        """Whatever else its records say of the question, of the tokens and of how hard was tried."""
        text = self.folder / "text.txt"
        text.write_text("a river runs by the hill. " * 40, encoding="utf-8")
        run = lambda *arguments: subprocess.run([program(), *map(str, arguments)], capture_output=True, check=True)
        run("train", text, "--out", self.folder / "l2", "--model", "l2", "--norm", "none", "--layers", 2, "--width", 8, "--heads", 2,
            "--context", 8, "--batch", 4, "--steps", 4, "--eval-every", 4, "--threads", 1, "--measure", 0, "--quiet")
        out = self.folder / "records.jsonl"
        run("measure", self.folder / "l2", "--text", text, "--lengths", "3,5,6,8", "--samples", 2, "--heads", "each", "--tokens",
            "--enclose", 1.05, "--quiet", "--out", out)
        page = self.folder / "page.html"
        run("report", out, "--out", page, "--quiet")
        self.browser.open(page)
        records = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
        records = [r for r in records if r["command"] == "measure"]
        self.assertEqual(len(records), 32)
        self.assertEqual(self.texts("main > .controls"), [])
        self.assertEqual(self.texts(".facts .ranks"), expected.rank_sentences(records))
        self.assertIn(f"of 4 heads: at {max(records, key=lambda r: r['lower'])['n']} tokens of text.txt (sample ", self.text("h1"))
        # and its fits are those of the view
        self.assertEqual(len(self.points("growth")), 3)

    def test_the_largest_view_is_looked_at_first(self):
        small, large = drawn(18, range(2), ["all"], kind="l2"), drawn(19, range(4), ["all"])
        self.show(small + large)
        self.check(large)

    def test_first_tokens_are_counted_where_they_carry_more_than_any_other(self):
        shares = [[0.5, 0.3, 0.2], [0.4, 0.4, 0.2], [0.1, 0.8, 0.1], [0.9, 0.05, 0.05]]
        self.show([measured(2.0 + k, n=3, sample=k, details={"input_share": s, "output_share": s}) for k, s in enumerate(shares)])
        self.assertIn("In 2 of its 4 sequences the first token carries more", self.text("#text"))

    def test_bound_beside_measurements_goes_from_the_least_to_the_largest_of_the_best(self):
        records = drawn(20, range(3), ["all"])
        bounds = [made.record(command="bound", layer=layer, lower=None, lower_by=None, n=8, upper=value, upper_log10=None,
                              upper_by=name, scope="ball", radius_max=4.0)
                  for layer, name, value in [(0, "a", 300.0), (0, "b", 200.0), (1, "a", 100.0), (1, "b", 400.0), (2, "a", 250.0)]]
        self.show(records + bounds)
        self.assertIn("at most from 100 for layer 1 to 250 for layer 2", self.text("#gap"))

    def test_heads_one_by_one_join_the_largest_of_each_length(self):
        records = drawn(21, range(2), range(3), lengths=(4, 8, 16), samples=3)
        self.show(records)
        layer = expected.rankings(records)[0][1][0]["layer"]
        self.browser.run("document.querySelector('#heads details').open = true")
        self.browser.settle()
        rows = self.browser.run("return [...document.querySelectorAll('#heads tbody tr')].map(r => [...r.cells].map(c => c.textContent))")
        wanted = [[str(head), str(n), expected.shown(max(r["lower"] for r in records if (r["layer"], r["head"], r["n"]) == (layer, head, n)), 4)]
                  for head in range(3) for n in (4, 8, 16)]
        self.assertEqual(rows, wanted)
        # every panel has its points, and they are where the records say
        self.assertEqual(self.browser.run("return [...document.querySelectorAll('#multiples svg')].map(s => s.querySelectorAll('circle').length)"), [9] * 3)

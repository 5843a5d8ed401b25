"""The page of `lipscope report`, as a person meets it: in a browser."""

import csv
import io
import json
import math
import pathlib
import re
import subprocess
import time

import records as made
from page_case import ENTER, TAB, PageCase, program
from picture import take_picture


class PageTest(PageCase):
    # ---- a measurement

    def test_first_screen_says_which_layer_which_words_how_much_how_sure(self):
        self.show(made.audit())
        self.assertEqual(self.text("h1"), "Layer 1 reacts most of 3 layers: at 8 tokens (sample 1), a small change of the input can come out 16.98 times as large, and none comes out more than 17.84 times as large, but for a chance of 10⁻¹⁰.")
        top = 10 * 8**0.25 * 1.01
        facts = self.text(".facts")
        self.assertIn("Layer 1, at 8 tokens (sample 1).", facts)
        self.assertIn("At least 16.98", facts)  # 16.9858, rounded down
        # the last digit of a number from above is rounded up: 67.944 is 67.95
        self.assertIn(f"At most {math.ceil(100 * 1.05 * top) / 100}, but for a chance of 10⁻¹⁰", facts)
        self.assertIn(f"At most {math.ceil(100 * 4 * top) / 100}, proved (split_paths); above / below 4.", facts)
        # the heaviest going in is token 1, coming out the last
        self.assertEqual(self.texts(".facts .word.in")[0], "me")
        self.assertEqual(self.texts(".facts .word.out")[0], "—never")
        self.assertIn("36 constants of 3 layers and 6 heads of tiny,", self.text(".lede"))
        self.assertIn("All converged.", self.text(".lede"))

    def test_a_piece_of_a_word_is_shown_in_its_word(self):
        tokens = ["The", " Man", "hat", "toes", ",", " 1st"]
        self.show([made.record(n=6, details={"tokens": tokens, "input_share": [0.0, 0.0, 0.95, 0.05, 0.0, 0.0], "output_share": [0.0, 0.0, 0.0, 0.0, 0.02, 0.98]})])
        self.assertEqual(self.texts(".facts li"), ["Manhattoes 95 %", "1st 98 %"])
        self.assertEqual(self.texts(".facts .word"), ["hat", "1st"])

    def test_the_rest_of_a_character_is_not_shown_as_a_blank(self):
        tokens = ["한", "", " b"]  # a syllable in two tokens
        self.show([made.record(n=3, details={"tokens": tokens, "input_share": [0.2, 0.7, 0.1], "output_share": [0.0, 0.0, 1.0]})])
        self.assertEqual(self.texts("#passage-in .token"), ["한", "⋯", "b"])
        self.assertEqual(self.texts(".facts .word.in")[0], "rest of the character before")

    def test_map_of_layers_and_heads_shows_the_largest_of_each(self):
        self.show(made.audit())
        rows = self.browser.run("return [...document.querySelectorAll('.heat tbody tr')].map(r => [...r.querySelectorAll('button')].map(b => b.textContent))")
        for layer, row in enumerate(rows):
            size = 10.0 if layer == 1 else 3.0 + layer
            for divisor, shown in zip([2, 3, 1], row):  # head 0, head 1, all
                self.assertAlmostEqual(float(shown) / (size * 8**0.25 * 1.01 / divisor), 1, delta=6e-3)

    def test_constants_against_length_are_the_records_and_their_fit(self):
        records = made.audit()
        self.show(records)
        measured, fit, root = self.points("growth")
        expected = sorted((r["n"], r["lower"]) for r in records
                          if r["command"] == "measure" and r["layer"] == 1 and r["head"] == "all")
        found = sorted((round(10**x), 10**y) for x, y in measured)
        self.assertEqual([n for n, _ in found], [n for n, _ in expected])
        for (_, a), (_, b) in zip(found, expected):
            self.assertAlmostEqual(a / b, 1, delta=1e-6)
        for x, y in fit:
            self.assertAlmostEqual(10**y, 10 * (10**x) ** 0.25, delta=1e-9)
        self.assertAlmostEqual(root[1][1] - root[0][1], 0.5 * math.log10(2), delta=1e-9)
        # the larger radius is the darker point
        colours = self.browser.run("return Chart.getChart('growth').data.datasets[0].backgroundColor")
        self.assertEqual(len(set(colours)), 2)

    def test_exponents_stand_beside_the_rates_of_the_papers(self):
        self.show(made.audit())
        exponents, intervals = self.points("exponents")
        self.assertEqual(exponents, [0.25] * 5)  # three layers, two heads of the one looked at
        self.assertEqual(intervals, [[0.2, 0.3]] * 5)
        self.assertIn("√n, the fastest at a fixed radius [Castin24]", self.text("#length"))

    def test_below_whp_and_above_stand_side_by_side(self):
        self.show(made.audit())
        below, whp, above, gap = self.points("gap-chart")
        self.assertEqual(len(below), 5)
        for b, w, a, g in zip(below, whp, above, gap):
            self.assertAlmostEqual(w - b, math.log10(1.05), delta=1e-5)
            self.assertAlmostEqual(a - b, math.log10(4), delta=1e-5)
            self.assertEqual(g, [b, a])

    def test_hover_shows_the_value(self):
        self.show(made.audit())
        where = self.browser.run("""
          const c = Chart.getChart("growth"); c.canvas.scrollIntoView({behavior: "instant", block: "center"});
          const box = c.canvas.getBoundingClientRect(), p = c.getDatasetMeta(0).data[0];
          return [box.x + p.x, box.y + p.y]""")
        self.browser.hover(*where)
        tip = self.browser.run("const t = Chart.getChart('growth').tooltip; return [t.opacity, ...t.body.flatMap(b => b.lines)]")
        self.assertGreater(tip[0], 0)
        self.assertIn(f"at least {10 * 4**0.25:.4g}", tip)
        self.assertIn("4 tokens, sample 0, radius 3", tip)

    def test_table_sorts_both_ways_with_what_is_absent_at_the_end(self):
        values = [3.0, None, 1e-7, 20.0, 2e9]
        self.show([made.record(lower=v, sample=k) for k, v in enumerate(values)])
        samples = "return [...document.querySelectorAll('#grid tbody tr[data-record]')].map(r => +r.dataset.record)"
        click = "document.querySelector('#grid [data-field=lower]').click()"
        self.assertEqual(self.browser.run(samples), [0, 1, 2, 3, 4])
        self.browser.run(click)
        self.assertEqual(self.browser.run(samples), [2, 0, 3, 4, 1])
        self.browser.run(click)
        self.assertEqual(self.browser.run(samples), [4, 3, 0, 2, 1])
        self.assertEqual(self.browser.run("return document.querySelector('[data-field=lower]').parentElement.ariaSort"), "descending")

    def test_csv_holds_the_records_in_the_order_of_the_table(self):
        records = made.audit()
        self.show(records)
        self.browser.run("document.querySelector('#grid [data-field=lower]').click(); document.querySelector('#csv').click()")
        path = pathlib.Path(self.browser.folder.name, "lipscope-records.csv")
        for _ in range(100):
            if path.exists():
                break
            time.sleep(0.05)
        rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))
        path.unlink()
        expected = sorted(r["lower"] for r in records if r["command"] == "measure")
        self.assertEqual(len(rows), len(expected))
        for row, lower in zip(rows, expected):
            self.assertAlmostEqual(float(row["lower"]) / lower, 1, delta=1e-6)
            self.assertEqual(row["model"], "tiny/")
            self.assertEqual(row["upper_by"], "split_paths")

    def colours(self, side):
        shown = self.browser.run("""
          const strength = parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--strength"));
          return [...document.querySelectorAll(`#passage-${arguments[0]} .token`)].map(t => {
            const found = /\\/ ([0-9.e-]+)\\)|rgba\\([^)]*, ([0-9.e-]+)\\)/.exec(getComputedStyle(t).backgroundColor);
            return [t.textContent, (found ? +(found[1] ?? found[2]) : 1) / strength]; })""", side)
        return [word for word, _ in shown], [share for _, share in shown]

    def test_token_colours_match_the_records(self):
        records = made.audit()
        self.show(records)
        for scheme in ("light", "dark"):
            self.browser.media(scheme)
            worst = max((r for r in records if r["command"] == "measure" and r["head"] == "all"), key=lambda r: r["lower"])
            for side, name in (("in", "input_share"), ("out", "output_share")):
                words, found = self.colours(side)
                expected = worst["details"][name]
                self.assertEqual(words, [w.strip() for w in worst["details"]["tokens"]])
                for share, of in zip(found, expected):
                    self.assertAlmostEqual(share, of / max(expected), delta=0.01)

    def test_another_layer_and_sequence_can_be_chosen_from_the_keyboard(self):
        self.show(made.audit())
        self.browser.run("document.querySelectorAll('#text select')[0].focus()")
        self.browser.press("\ue015")  # arrow down: layer 2
        self.assertIn("What layer 2 reacts to", self.text("#text"))
        self.assertEqual(self.browser.run("return document.activeElement.value"), "2")
        _, found = self.colours("in")
        self.assertEqual(found.index(max(found)), 2)
        self.browser.run("[...document.querySelectorAll('.heat button')][3].focus()")
        self.browser.press(ENTER)  # head 0 of layer 1
        self.assertIn("What head 0 of layer 1 reacts to", self.text("#text"))
        self.assertEqual(self.browser.run("return document.activeElement.getAttribute('aria-pressed')"), "true")

    # ---- what may go wrong

    def test_no_records_at_all(self):
        self.show([])
        self.assertEqual(self.text("h1"), "There is nothing here yet.")

    def test_a_single_record(self):
        self.show([made.record()])
        self.assertEqual(self.text("h1"), "Layer 0: at 8 tokens (sample 0), a small change of the input can come out 2 times as large. Nothing is known from above.")
        self.assertIn("Nothing was said from above", self.text(".facts"))
        self.assertEqual(len(self.texts("#grid tbody tr[data-record]")), 1)

    def test_nulls_everywhere(self):
        bare = {k: None for k in made.record()}
        self.show([{**bare, "command": "measure"}, {**bare, "command": "search"}, bare, {}])
        self.assertEqual(len(self.texts("#grid tbody tr[data-record]")), 4)

    def test_what_did_not_converge_is_said(self):
        self.show([made.record(status="not-converged"), made.record(sample=1, lower=1.0)])
        self.assertIn("1 did not converge", self.text(".lede"))
        self.assertIn("cut short", self.text(".facts"))
        self.assertEqual(len(self.texts("#grid tr.open")), 1)

    def test_bounds_beyond_double_are_shown_by_their_logarithm(self):
        self.show([made.record(upper_log10=412.3, upper_by="product")])
        self.assertIn("At most 10^412.3, proved (product)", self.text(".facts"))
        self.assertAlmostEqual(self.points("gap-chart")[2][0], 412.3, delta=1e-9)

    def test_numbers_that_contradict_each_other_are_not_passed_over(self):
        self.show([made.record(lower=3.0, upper=2.0, upper_log10=math.log10(2))], code=4)
        self.assertIn("1 record contradicts itself", self.text("[role=alert]"))

    def test_hostile_strings_are_text(self):
        bad = ['</script><script>window.hacked=1</script>', '<img src=x onerror="window.hacked=1">', "{{data}}", "<!--<script>", "=1+1", "\u2028", "&lt;b&gt;", "]]>"]
        records = [made.record(model=word, sample=k, upper_by=word, upper=9.0, lower_by=word, status=word, kind=word, norm=word,
                               map=word, scope=word, head=word, details={"tokens": bad, "input_share": made.shares(8, k), "output_share": made.shares(8, k), word: word})
                   for k, word in enumerate(bad)]
        records += [made.record(command=word, parameters={"experiment": word, "series": word, "x_name": word, "x": 1}, details={"title": word, "explanation": word, "y_name": word}) for word in bad]
        records += [made.record(command=command, model=word, input={"from": word, "name": word, "sha256": word, "offset": None},
                                parameters={"text": word, "split": word, "limit": word, "series": "valid"}, details={"recovered": word}, **more)
                    for word in bad for command, more in [("certify", {}), ("train", {"value": 2.0}), ("bound", {"upper": 9.0}), ("invert", {"upper": 9.0})]]
        records += [made.record(command="reproduce", lower=None, parameters={"experiment": word}, details={"title": word, "explanation": word}) for word in bad]
        records += [{**made.growth(layer=0, head=bad[0], exponent=0.1, constant=1.0), "model": bad[0]}, {"__proto__": 1, "constructor": 2, "command": "search", "lower": 1.0}]
        self.show(records)
        self.assertIsNone(self.browser.run("return window.hacked"))
        self.assertEqual(self.browser.run("return document.querySelectorAll('img, script').length"), 3)  # the page's own
        self.assertEqual(self.texts("#passage-in .token")[:3], bad[:3])
        rows = self.browser.run("return csv()")
        self.assertIn("'=1+1", rows)
        self.assertIn(bad[0], rows)

    def test_fields_of_other_types_than_theirs_do_no_harm(self):
        # what the program checks it refuses by name; what it does not check reaches the page
        odd = [None, True, 3, "x", [], {}, [[1]], {"name": [1], "from": {}}]
        records = [made.record(sample=k, parameters={"limit": value}, details={"title": value, "flow": value, "input_share": [0.5, 0.5]}) for k, value in enumerate(odd)]
        records += [{**made.growth(layer=0, head="all", exponent=0.1, constant=1.0), "title": value} for value in odd]
        for command in ("measure", "certify", "train", "reproduce", "bound", "search", "invert", "meanfield", "x", "constructor"):
            self.show([{**r, "command": command} if "lower" in r else r for r in records])
            self.assertTrue(self.text("h1"), command)
            self.assertNotRegex(self.text("header"), r"undefined|NaN|\[object", command)
            self.assertEqual(len(self.texts("#grid")), 1)
        for wrong in ({"input": 3}, {"parameters": {"experiment": True}}, {"details": {"lower_log10": "x"}}, {"lower": "x"}):
            self.write_page([made.record(**wrong)], code=2)
        self.show(records, records, command="compare")
        self.assertTrue(self.text("h1"))
        # names that every object has
        for name in ("constructor", "__proto__", "toString"):
            self.show([made.record(model=name, map=name, kind=name, norm=name, scope=name, mask=name, upper=9.0, input={"from": name}, **{"parameters": {name: 1}, "details": {name: 2}})])
            self.assertNotIn("native code", self.text("body > main") + self.text("header"))

    def test_hostile_file_names_are_text(self):
        path = self.folder / "<img src=x onerror=window.hacked=1>&amp;.jsonl"
        made.write(path, [made.record()])
        page = self.folder / "page.html"
        subprocess.run([program(), "report", path, "--out", page, "--quiet"], check=True)
        self.browser.open(page)
        self.assertIsNone(self.browser.run("return window.hacked"))
        self.assertIn(path.name, self.browser.run("return document.title"))
        self.assertIn(path.name, self.text(".brand"))

    # of more than these some stand for all: many_test.py
    def test_twenty_thousand_records_are_all_there_open_and_scroll(self):
        page = self.write_page(made.many(20_000))
        self.assertLess(page.stat().st_size, 8e6)
        start = time.monotonic()
        self.browser.open(page)
        self.assertEqual(self.browser.run("return document.querySelectorAll('#grid').length"), 1)
        seconds = time.monotonic() - start
        print(f"20,000 records: {page.stat().st_size / 1e6:.1f} MB, open after {seconds:.1f} s")
        self.assertLess(seconds, 8)  # beside other tests; 2 s on a quiet machine
        self.assertLess(self.browser.run("return document.querySelectorAll('#grid tr').length"), 100)
        self.browser.run("const g = document.getElementById('grid'); g.scrollTop = g.scrollHeight")
        self.browser.settle()
        rows = self.browser.run("return [...document.querySelectorAll('#grid tr[aria-rowindex]')].map(r => +r.ariaRowIndex || +r.getAttribute('aria-rowindex'))")
        self.assertEqual(rows[-1], 20_001)
        self.browser.run("document.querySelector('#grid [data-field=lower]').click()")
        self.assertEqual(self.texts("#grid tbody tr[data-record] td:nth-child(5)")[0], "1")

    def test_thinned_charts_say_so_and_keep_the_extremes(self):
        records = [made.record(n=n, sample=k, lower=n + k / 1000) for n in (2, 4, 8) for k in range(1500)]
        self.show(records)
        points = self.points("growth")[0]
        self.assertLessEqual(len(points), 2010)
        self.assertIn("of 4,500 points are drawn", self.text("#length"))
        for n in (2, 4, 8):
            values = [10**y for x, y in points if round(10**x) == n]
            self.assertAlmostEqual(min(values), n, delta=1e-5)
            self.assertAlmostEqual(max(values), n + 1.499, delta=1e-4)

    # ---- everybody

    def test_phone_has_no_sideways_scrolling(self):
        for width in (320, 390, 768):
            self.browser.size(width, 800)
            self.show(made.audit(heads=12) + made.bounds() + made.searched() + made.experiment())
            self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), width)

    def test_text_is_readable_in_light_and_dark(self):
        for scheme in ("light", "dark"):
            self.browser.media(scheme)
            self.show(made.audit())
            pairs = self.browser.run("""
              const seen = (s, p) => getComputedStyle(document.querySelector(s))[p];
              const bg = seen("body", "backgroundColor");
              return [["body", bg], [".lede", bg], ["h1 .number", bg], [".facts .whp", bg], [".facts .above", bg], ["summary", bg], ["#csv", seen("#csv", "backgroundColor")], [".save", seen(".save", "backgroundColor")],
                      [".multiple span", seen(".multiple", "backgroundColor")], [".scroll-hint", bg], [".legend li", bg], [".ranks", bg]]
                .map(([s, b]) => [s, seen(s, "color"), b])""")
            for name, ink, paper in pairs:
                self.assertGreaterEqual(contrast(ink, paper), 4.5, f"{name} in {scheme}")
        # charts follow
        self.assertNotEqual(*[self.tick_colour(scheme) for scheme in ("light", "dark")])

    def tick_colour(self, scheme):
        self.browser.media(scheme)
        return self.browser.run("return Chart.getChart('growth').options.scales.x.ticks.color")

    def test_every_figure_has_a_name_and_its_numbers_as_a_table(self):
        self.show(made.audit() + made.bounds() + made.searched() + made.meanfield() + made.experiment())
        figures = self.browser.run("""
          return [...document.querySelectorAll("canvas")].map(c => {
            const d = c.closest("figure").querySelector("details"); d.open = true;
            return [c.id, c.getAttribute("role"), c.getAttribute("aria-label")]; })""")
        self.browser.settle()  # toggle events
        self.assertEqual(len(figures), 7)
        for name, role, label in figures:
            self.assertEqual(role, "img")
            self.assertGreater(len(label), 10)
            cells = self.browser.run("return document.getElementById(arguments[0]).closest('figure').querySelectorAll('details td').length", name)
            self.assertGreater(cells, 0, name)
        self.assertEqual(self.browser.run("return [...document.querySelectorAll('select')].filter(s => !s.labels.length).length"), 0)
        self.assertEqual(self.browser.run("return [document.documentElement.lang, document.querySelectorAll('h1').length]"), ["en", 1])
        twice = self.browser.run("const ids = [...document.querySelectorAll('[id]')].map(n => n.id); return ids.filter((d, k) => ids.indexOf(d) !== k)")
        self.assertEqual(twice, [])
        self.browser.run("document.activeElement.blur()")
        self.browser.press(TAB)
        self.assertEqual(self.browser.run("return document.activeElement.className"), "skip")

    def test_prints(self):
        self.show(made.audit())
        self.browser.media("light", "print")
        self.assertEqual(self.browser.run("return getComputedStyle(document.querySelector('.controls')).display"), "none")
        self.assertGreater(len(self.browser.cdp("Page.printToPDF", printBackground=True)["data"]), 50_000)

    def test_picture_for_the_readme_is_small(self):
        page = self.write_page(made.audit())
        take_picture(page, self.folder / "page.png")
        content = (self.folder / "page.png").read_bytes()
        self.assertEqual(content[:4], b"\x89PNG")
        self.assertLess(len(content), 300_000)


def contrast(a, b):
    """The contrast of two colours, as WCAG 2 defines it."""
    def luminance(text):
        parts = [int(x) / 255 for x in re.findall(r"\d+", text)[:3]]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    high, low = sorted([luminance(a), luminance(b)], reverse=True)
    return (high + 0.05) / (low + 0.05)

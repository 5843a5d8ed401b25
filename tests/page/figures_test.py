"""What figures are made of: drawings to take away, curves on one another, flows from token to token, wide tables."""

import math
import pathlib
import re
import time
import xml.etree.ElementTree as ElementTree

import expected
import records as made
from page_case import PageCase

SVG = "{http://www.w3.org/2000/svg}"


def flowing(flow, **more):
    """A measurement with the flow between its tokens, and the shares that it sums to."""
    n = len(flow)
    rows = [sum(row) for row in flow]
    columns = [sum(row[j] for row in flow) for j in range(n)]
    return made.record(n=n, details={"tokens": made.WORDS[:n], "input_share": columns, "output_share": rows, "flow": flow}, **more)


class SvgTest(PageCase):
    def saved(self, name):
        """The drawing that a button hands out, as a file."""
        path = pathlib.Path(self.browser.folder.name, f"lipscope-{name}.svg")
        self.browser.run("document.querySelector(`[data-svg='${arguments[0]}']`).click()", name)
        for _ in range(100):
            if path.exists() and path.stat().st_size > 0:
                break
            time.sleep(0.05)
        content = path.read_text(encoding="utf-8")
        path.unlink()
        return ElementTree.fromstring(content)

    def of_class(self, root, tag, name):
        return [e for e in root.iter(SVG + tag) if e.get("class") == name]

    def test_every_figure_has_one_and_it_is_made_of_vectors(self):
        self.show(made.audit() + made.bounds() + made.searched() + made.meanfield() + made.experiment() + made.certified())
        names = self.browser.run("return [...document.querySelectorAll('[data-svg]')].map(b => b.dataset.svg)")
        figures = self.browser.run("return document.querySelectorAll('figure').length")
        self.assertEqual(len(names), figures)
        self.assertEqual(len(set(names)), figures)
        self.assertGreaterEqual(figures, 9)
        for name in names:
            root = self.saved(name)
            self.assertEqual(root.tag, SVG + "svg")
            tags = {e.tag.removeprefix(SVG) for e in root.iter()}
            self.assertFalse(tags & {"image", "foreignObject", "script", "canvas"}, name)
            self.assertTrue(tags & {"path", "circle", "rect", "polyline"}, name)
            self.assertIn("text", tags, name)
            for e in root.iter():
                for value in e.attrib.values():
                    self.assertNotRegex(value, "NaN|undefined|var\\(|url\\(", name)
                # colours that every reader knows
                for field in ("fill", "stroke"):
                    self.assertRegex(e.get(field, "none"), r"^(none|#[0-9a-fA-F]{6}|rgb\([\d.]+, ?[\d.]+, ?[\d.]+\))$", f"{name}: {e.tag}")

    def linear(self, pairs):
        """That the second is an affine function of the first, falling or rising: places on an axis."""
        (x0, y0), (x1, y1) = min(pairs), max(pairs)
        slope = (y1 - y0) / (x1 - x0)
        for x, y in pairs:
            self.assertAlmostEqual(y, y0 + slope * (x - x0), delta=0.02)
        return slope

    def test_points_stand_where_their_numbers_are(self):
        records = made.audit(layers=1, heads=0, lengths=(4, 8, 32), samples=3)
        records = [r for r in records if r["command"] == "measure"]
        self.show(records)
        root = self.saved("growth")
        drawn = [(float(c.get("cx")), float(c.get("cy"))) for c in self.of_class(root, "circle", "point")]
        known = [tuple(p) for p in self.points("growth")[0]]
        self.assertEqual(len(drawn), len(records))
        self.assertGreater(self.linear([(k[0], d[0]) for k, d in zip(known, drawn)]), 0)
        self.assertLess(self.linear([(k[1], d[1]) for k, d in zip(known, drawn)]), 0)  # down the page

    def test_axes_and_legend_are_written_out(self):
        self.show(made.experiment())
        root = self.saved(self.browser.run("return document.querySelector('canvas').id"))
        words = [e.text for e in root.iter(SVG + "text")]
        self.assertIn("inf-norm", words)
        self.assertIn("N", words)
        self.assertEqual([e.text for e in self.of_class(root, "text", "legend")], ["found, from below", "found, from above"])
        ticks = self.browser.run("const c = Chart.getChart(document.querySelector('canvas')); return Object.values(c.scales).flatMap(s => s.ticks.map(t => t.label)).filter(Boolean)")
        self.assertEqual(sorted(e.text for e in self.of_class(root, "text", "tick")), sorted(ticks))
        self.assertEqual(len(self.of_class(root, "path", "line")), 2)
        dashes = [e.get("stroke-dasharray") for e in self.of_class(root, "path", "line")]
        self.assertEqual(sorted(d or "" for d in dashes), ["", "5 4"])

    def test_steps_are_drawn_as_steps(self):
        self.show(made.certified())
        root = self.saved("certify-chart")
        paths = [e.get("d") for e in self.of_class(root, "path", "line")]
        self.assertEqual(len(paths), 2)
        for path in paths:
            self.assertRegex(path, r"^M[\d.]+ [\d.]+([VH][\d.]+)+$")
        # what is proved falls after its radius, what is broken falls at it
        first = {e.get("stroke-dasharray") is None: re.search("[VH]", e.get("d"))[0] for e in self.of_class(root, "path", "line")}
        self.assertEqual(first, {True: "V", False: "H"})

    def test_bars_are_as_long_as_their_numbers(self):
        self.show(made.bounds())
        bars = [float(e.get("width")) for e in self.of_class(self.saved("bounds-chart"), "rect", "bar")]
        logs = self.points("bounds-chart")[0]
        self.assertEqual(len(bars), 3)
        for bar, log in zip(bars, logs):
            self.assertAlmostEqual(bar, log * bars[2] / logs[2], delta=1)  # whole pixels

    def test_the_map_of_heads_is_a_drawing_of_its_cells(self):
        self.show(made.audit())
        root = self.saved("map")
        cells = self.of_class(root, "rect", "cell")
        self.assertEqual(len(cells), 9)
        words = [e.text for e in root.iter(SVG + "text")]
        for shown in self.texts("#map .cell"):
            self.assertIn(shown, words)

    def test_hostile_words_are_text_in_the_drawing(self):
        bad = "<img src=x onerror=alert(1)>&\"'"
        self.show([made.record(command="reproduce", lower=2.0 + k, parameters={"experiment": bad, "series": bad, "x_name": bad, "x": k}) for k in (1, 2)])
        root = self.saved(self.browser.run("return document.querySelector('canvas').id"))
        self.assertIn(bad, [e.text for e in root.iter(SVG + "text")])


class CurvesTest(PageCase):
    def curves(self, series):
        """Series of values over 1, 2, …, on one figure."""
        records = [made.record(command="reproduce", lower=None, lower_by=None, value_of="a number", value=value,
                               parameters={"experiment": "e", "series": name, "x_name": "x", "x": k})
                   for name, values in series.items() for k, value in enumerate(values)]
        self.show(records)
        chart = self.browser.run("return document.querySelector('canvas').id")
        styles = self.browser.run("return Chart.getChart(arguments[0]).data.datasets.map(d => [d.borderDash, d.borderDashOffset ?? 0, d.pointRadius])", chart)
        return self.legend(chart), styles

    def test_curves_on_one_another_share_the_line_and_the_legend_says_so(self):
        same = [1.0, 5.0, 2.0, 8.0]
        legend, styles = self.curves({"a": same, "b": [2.0, 1.0, 9.0, 3.0], "c": same, "d": [v + 1e-4 for v in same]})
        self.assertEqual(legend, ["a", "b", "c (coincides with a)", "d (coincides with a)"])
        # the first as ever, the others in dashes on it that leave a third of it free and do not cover one another
        self.assertEqual([s[0] for s in styles], [[], [], [7, 14], [7, 14]])
        self.assertEqual([-s[1] for s in styles[2:]], [0, 7])
        self.assertEqual(len({styles[k][2] for k in (0, 2, 3)}), 3)  # and rings of different sizes
        order = self.browser.run("return Chart.getChart(document.querySelector('canvas')).getSortedVisibleDatasetMetas().map(m => m.index)")
        self.assertEqual(order[-2:], [0, 1])  # drawn from the last on: the dashes lie above

    def test_curves_that_part_are_left_alone(self):
        legend, styles = self.curves({"a": [1.0, 2.0, 3.0, 4.0], "b": [4.0, 3.0, 2.0, 1.0], "c": [1.0, 2.1, 3.2, 4.3]})
        self.assertEqual(legend, ["a", "b", "c"])
        self.assertEqual([s[0] for s in styles], [[], [], []])

    def test_curves_that_meet_for_the_most_part_say_so(self):
        legend, _ = self.curves({"a": [1.0, 5.0, 2.0, 8.0], "b": [7.0, 5.0, 2.0, 8.0]})
        self.assertEqual(legend, ["a", "b (mostly coincides with a)"])
        rise = [float(k) for k in range(8)]
        legend, _ = self.curves({"a": rise, "b": rise[:3] + [9.0, 8.0, 9.0, 8.0, 9.0]})
        self.assertEqual(legend, ["a", "b (partly coincides with a)"])
        # lines that cross or touch at an end do not coincide
        legend, _ = self.curves({"a": [1.0, 9.0], "b": [1.0, 2.0], "c": [9.0, 1.0]})
        self.assertEqual(legend, ["a", "b", "c"])

    def test_more_curves_than_colours_differ_by_their_points(self):
        legend, _ = self.curves({f"s{k}": [k, 20.0 - k] for k in range(8)})
        styles = self.browser.run("return Chart.getChart(document.querySelector('canvas')).data.datasets.map(d => d.borderColor + d.pointStyle)")
        self.assertEqual(len(set(styles)), 8)
        self.assertEqual(legend[5:], ["s5", "▲ s6", "▲ s7"])

    def test_both_sides_of_one_constant_stay_visible_where_they_meet(self):
        self.show([made.record(command="reproduce", lower=x**2, upper=x**2, parameters={"experiment": "e", "series": "s", "x_name": "x", "x": x}) for x in (1.0, 2.0, 3.0)])
        chart = self.browser.run("return document.querySelector('canvas').id")
        self.assertEqual(self.legend(chart), ["s, from below", "s, from above (coincides with s, from below)"])


class RowsTest(PageCase):
    def test_names_of_rows_are_not_cut_by_the_edge(self):
        records = [made.record(command="meanfield", norm="w2", layer=layer, n=n, lower=2.0 + layer, upper=9.0, lower_by="golub-kahan-f32",
                               parameters={"change": change}) for layer in (0, 5) for n in (8, 16) for change in ("moved", "parted")]
        for width in (320, 400, 1200):
            self.browser.size(width, 800)
            self.show(records)
            chart = "Chart.getChart(document.querySelector('canvas'))"
            widest, room, names, row = self.browser.run(f"""
              const c = {chart}, ctx = c.ctx; ctx.font = `12px ${{getComputedStyle(document.body).fontFamily}}`;
              const lines = c.data.labels.flat();
              return [Math.max(...lines.map(l => ctx.measureText(l).width)), c.scales.y.width, c.data.labels.map(l => [l].flat().join(" ")), c.scales.y.height / c.data.labels.length - 14 * Math.max(...c.data.labels.map(l => [l].flat().length))]""")
            self.assertLessEqual(widest, room, width)
            self.assertGreaterEqual(row, 0)  # lines of neighbours do not touch
            self.assertEqual(len(set(names)), len(records))


class FlowTest(PageCase):
    FLOW = [[0.3, 0.1, 0.0], [0.0, 0.25, -0.12], [0.35, 0.0, 0.12]]

    def test_links_are_the_flow_of_the_record(self):
        self.show([flowing(self.FLOW)])
        links = self.browser.run("return [...document.querySelectorAll('.flow .link')].map(l => [l.querySelector('title').textContent, +l.getAttribute('stroke-width'), l.hasAttribute('stroke-dasharray')])")
        wanted = {f"from {made.WORDS[j].strip()} to {made.WORDS[i].strip()}: {float(f'{100 * part:.3g}'):g} %": part
                  for i, row in enumerate(self.FLOW) for j, part in enumerate(row) if part}
        self.assertEqual({title for title, *_ in links}, set(wanted))
        widest = max(abs(p) for p in wanted.values())
        for title, width, dashed in links:
            self.assertAlmostEqual(width, 0.6 + 8 * abs(wanted[title]) / widest, delta=0.01)
            self.assertEqual(dashed, wanted[title] < 0)
        self.assertEqual(self.text("#flow-words"), "The largest part, 35 % of what comes out, enters at “Call” (token 0) and reaches “Ishmael” (token 2).")
        self.assertIn("works against", self.text("#text figcaption"))

    def test_the_largest_part_is_that_of_the_records(self):
        rows = [[0.1, 0.2, 0.05], [0.3, 0.12, 0.02], [0.01, 0.15, 0.05]]
        self.show([flowing(rows)])
        self.assertIn("enters at “Call” (token 0) and reaches “me” (token 1)", self.text("#flow-words"))
        rows[1][1] = 0.9
        self.show([flowing([[x / 1.78 for x in row] for row in rows])])
        self.assertIn("enters at “me” (token 1) and reaches the same token", self.text("#flow-words"))

    def test_few_links_of_many_are_drawn_and_counted(self):
        n = 8
        flow = [[0.5 if (i, j) == (0, 0) else 0.46 if (i, j) == (3, 1) else 0.04 / 62 for j in range(n)] for i in range(n)]
        self.show([flowing([[round(x, 4) for x in row] for row in flow])])
        self.assertEqual(len(self.texts(".flow .link")), 2)
        self.assertIn("2 links of 64 are drawn; they carry 96.3 % of the flow.", self.text("#text figcaption"))

    def test_fits_a_phone_and_is_redrawn_for_a_desk(self):
        record = flowing(self.FLOW)
        for width in (400, 1200, 320):
            self.browser.size(width, 800)
            self.show([record])
            self.browser.settle()
            drawn = self.browser.run("const f = document.querySelector('.flow').getBoundingClientRect(); return [f.left, f.right]")
            self.assertGreaterEqual(drawn[0], 0)
            self.assertLessEqual(drawn[1], width)
            sizes = self.browser.run("return [...document.querySelectorAll('.flow text')].map(t => parseFloat(getComputedStyle(t).fontSize))")
            self.assertGreaterEqual(min(sizes), 12)
            # no word leaves its side
            inside = self.browser.run("const f = document.querySelector('.flow').getBoundingClientRect(); return [...document.querySelectorAll('.flow text')].every(t => { const b = t.getBoundingClientRect(); return b.left >= f.left - 1 && b.right <= f.right + 1; })")
            self.assertTrue(inside)

    def test_there_is_none_without_a_flow_and_a_shorter_sequence_is_named(self):
        self.show(made.audit())
        self.assertEqual(self.texts(".flow") + self.texts("#flow-missing"), [])
        longer = made.record(lower=9.0, sample=1, details={"input_share": [0.5, 0.5], "output_share": [0.5, 0.5]}, n=2)
        self.show([flowing(self.FLOW), longer])
        self.assertEqual(self.texts(".flow"), [])
        self.assertIn("choose a shorter one", self.text("#flow-missing"))


class ScrollTest(PageCase):
    WIDE = "return [...document.querySelectorAll('.scroll')].map(s => [s.scrollWidth > s.clientWidth + 1, !s.nextElementSibling.hidden, s.classList.contains('more-right'), s.classList.contains('more-left')])"

    def test_tables_wider_than_the_screen_say_so(self):
        for width in (400, 1200):
            self.browser.size(width, 900)
            self.show(made.audit(heads=12))
            self.browser.settle()
            boxes = self.browser.run(self.WIDE)
            self.assertGreaterEqual(len(boxes), 3)
            for hides, hinted, right, left in boxes:
                self.assertEqual([hinted, right, left], [hides, hides, False], width)
            self.assertEqual(any(hides for hides, *_ in boxes[:2]), width == 400)

    def test_the_shadow_moves_to_the_side_where_something_is_hidden(self):
        self.browser.size(400, 900)
        self.show(made.audit(heads=12))
        self.browser.run("const s = document.querySelector('.scroll'); s.scrollLeft = s.scrollWidth")
        self.browser.settle()
        self.assertEqual(self.browser.run(self.WIDE)[0], [True, True, False, True])
        self.assertNotEqual(self.browser.run("return getComputedStyle(document.querySelector('.scroll')).boxShadow"), "none")

"""The page of every other command: what it draws, and what its first sentence says."""

import math

import records as made
from page_case import PageCase


class CommandsTest(PageCase):
    def test_bounds_are_bars_by_name_best_first(self):
        self.show(made.bounds())
        self.assertEqual(self.browser.run("return Chart.getChart('bounds-chart').data.labels"), ["column_sums", "castin24_ball", "castin24_meanfield"])
        self.assertEqual([round(log, 5) for log in self.points("bounds-chart")[0]], [3.25, 4.5, 412.0])
        self.assertEqual(self.text("h1"), "No small change comes out more than 1,778 times as large (layer 0, n = 64, radius 11, column_sums), over the ball of this radius.")

    def test_search_shows_starts_best_and_bound(self):
        self.show(made.searched())
        found, best, bound = self.points("search-chart")
        self.assertEqual([round(10**y, 4) for _, y in found], [3.0, 6.8825, 5.0, 7.1])
        self.assertEqual([x for x, _ in found], [1, 2, 3, 4])
        self.assertEqual([round(10**y, 4) for _, y in best], [3.0, 6.8825, 6.8825, 7.1])
        self.assertAlmostEqual(10 ** bound[0][1], 14, delta=1e-4)
        self.assertIn("none can react more than 14 times: above / below 1.97.", self.text("#search"))
        self.assertEqual(self.text("h1"), "The worst input found reacts 7.1 times (layer 0, n = 20, radius 2); none can react more than 14 times, above / below 1.97.")

    def test_search_shows_the_starts_that_its_last_record_lists(self):
        starts = [{"start": "growth", "before": 2.0, "value": 6.0}, {"start": "random 1", "before": 1.0, "value": 7.1}]
        self.show(made.searched() + [made.record(command="search", n=20, radius_max=2.0, lower=7.1, scope="ball", details={"starts": starts})])
        after, _, before, _ = self.points("search-chart")
        self.assertEqual([round(10**y, 4) for _, y in after], [6.0, 7.1])
        self.assertEqual([round(10**y, 4) for _, y in before], [2.0, 1.0])

    def test_where_no_bound_exists_the_family_is_drawn(self):
        self.show([made.record(command="bound", lower=t**2, parameters={"t": t}, details={"not_lipschitz": True}) for t in (10.0, 100.0, 1000.0)])
        self.assertEqual([[round(x, 6), round(y, 6)] for x, y in self.points("witness-chart")[0]], [[1, 2], [2, 4], [3, 6]])

    def test_commands_without_a_figure_of_their_own_have_the_common_one(self):
        self.show(made.meanfield())
        below, _, above, _ = self.points(self.browser.run("return document.querySelector('canvas').id"))
        self.assertEqual([round(10**y, 3) for y in below], [0.591, 0.75])
        self.assertEqual([round(10**y, 3) for y in above], [3.0, 3.0])

    def test_experiments_draw_their_series(self):
        self.show(made.experiment())
        self.assertEqual(self.text("h1"), "L2 attention nearly attains its bound: above / below lies between 1.16 (found at N = 51) and 1.24 (found at N = 3) over 3 points.")
        low, up = self.points(self.browser.run("return document.querySelector('canvas').id"))
        self.assertEqual([[round(10**x), y] for x, y in low], [[3, 2.2922], [9, 4.2046], [51, 8.2624]])
        self.assertEqual([y for _, y in up], [2.8522, 5.1605, 9.5906])
        self.assertEqual(self.browser.run("return Chart.getChart(document.querySelector('canvas')).options.scales.y.title.text"), "inf-norm")

    def test_where_records_come_from_is_said_once(self):
        self.show([made.record(sample=k, command_line="lipscope measure --random 'd=8 x'", machine="a machine, 2 cores") for k in range(3)])
        said = self.text("#provenance")
        self.assertEqual(said.count("lipscope measure --random 'd=8 x'"), 1)
        self.assertIn("Measured ona machine, 2 cores", said)
        self.assertNotIn("a machine", self.text("#records"))

    def test_values_that_are_no_constants_are_drawn_on_no_side(self):
        self.show(made.losses())
        self.assertEqual(self.text("h1"), "runs/l2: losses: of 10 values the least is 2.4 (model 4 at step = 20).")
        curves = self.points(self.browser.run("return document.querySelector('canvas').id"))
        self.assertEqual(curves[1], [[10, 2.8], [20, 2.7]])
        datasets = "return Chart.getChart(document.querySelector('canvas')).data.datasets"
        self.assertEqual(self.browser.run(f"{datasets}.map((d) => d.label)"), [f"model {k}" for k in range(5)])
        self.assertEqual(len(set(self.browser.run(f"{datasets}.map((d) => d.borderColor)"))), 5)
        self.assertEqual(self.browser.run(f"{datasets}.map((d) => d.borderDash.length)"), [0] * 5)

    def test_a_cloud_of_points_has_no_line_but_its_fit(self):
        self.show(made.cloud())
        chart = "Chart.getChart(document.querySelector('canvas')).data.datasets"
        self.assertEqual(self.browser.run(f"return {chart}.map((d) => d.showLine)"), [False, True])
        cloud, fit = self.points(self.browser.run("return document.querySelector('canvas').id"))
        self.assertEqual(len(cloud), 4)
        self.assertEqual([[round(x, 6), round(10**y, 6)] for x, y in fit], [[1, round(1.5 * 10**0.5, 6)], [2, 15]])
        self.assertIn("1.5·n^0.5", self.text("main"))

    def test_bounds_of_several_questions_are_told_from_the_least_to_the_largest_of_the_best(self):
        asked = {(0, 8, 2.0): [50.0, 40.0], (0, 64, 2.0): [90.0, 95.0], (1, 8, 2.0): [30.0, 20.0], (1, 8, 4.0): [70.0, 60.0]}
        records = [made.record(command="bound", lower=None, lower_by=None, layer=layer, n=n, radius_max=radius, upper=value,
                               upper_by="ab"[k], scope="ball")
                   for (layer, n, radius), values in asked.items() for k, value in enumerate(values)]
        # holds everywhere, so that it is the best of none of these but counts in all of layer 1 with 8 tokens
        records.append(made.record(command="bound", lower=None, lower_by=None, layer=1, n=8, radius_max=None, upper=65.0, upper_by="c", scope="everywhere"))
        self.show(records)
        self.assertEqual(self.text("h1"), "Of 4 questions, the best bounds go from 20 (layer 1, n = 8, radius 2, b) to 90 (layer 0, n = 64, radius 2, a).")
        choices = self.texts("#bounds option")
        self.assertEqual(len(choices), 4)
        best = {}
        for k, name in enumerate(choices):
            self.browser.run("""const list = document.querySelector('#bounds select');
                                list.selectedIndex = arguments[0]; list.dispatchEvent(new Event('change'))""", k)
            values = [round(10**y, 3) for y in self.points("bounds-chart")[0]]
            self.assertEqual(values, sorted(values))
            self.assertIn(f"at most {min(values):g}.", self.text("#bounds figcaption"))
            best[name] = values
        self.assertEqual(sorted(best.values()), [[20, 30, 65], [40, 50], [60, 65, 70], [90, 95]])

    def test_search_takes_the_largest_of_several_questions_with_its_own_bound(self):
        other = [made.record(command="search", layer=1, n=20, radius_max=3.0, lower=9.0, upper=12.0, scope="ball")]
        self.show(made.searched() + other)
        self.assertEqual(self.text("h1"), "The largest of 2 searches: the worst input found reacts 9 times (layer 1, n = 20, radius 3); none can react more than 12 times, above / below 1.33.")

    def test_inverted_inputs_are_told_by_their_errors(self):
        records = [made.record(command="invert", map="inverse", norm="inf", sample=k, lower=error, upper=bound,
                               status="converged" if k != 1 else "not-converged")
                   for k, (error, bound) in enumerate([(0.002, 0.02), (0.008, 0.01), (0.001, 0.04)])]
        self.show(records)
        self.assertEqual(self.text("h1"), "2 of 3 inputs came back; the largest error is 0.008, and at most 0.04 is proved.")

    def test_meanfield_says_the_largest_with_what_is_known_from_above(self):
        self.show(made.meanfield())
        self.assertEqual(self.text("h1"), "Largest of 2: layer 0, 2 tokens (sample 0): two close measures can come out 0.75 times as far apart, and at most 3 times, proved (column_sums_meanfield).")

    def test_rows_of_two_texts_are_told_apart(self):
        texts = [{"from": "text", "name": f"books/{name}.txt", "sha256": "00", "offset": 0} for name in ("alice", "moby")]
        self.show([made.record(command="meanfield", norm="w2", lower=2.0, upper=9.0, lower_by="split", input=text) for text in texts])
        self.assertEqual(self.browser.run("return Chart.getChart(document.querySelector('canvas')).data.labels"), ["alice.txt, split", "moby.txt, split"])
        self.assertIn("Textbooks/alice.txt, books/moby.txt", self.text("#provenance"))

    def test_the_claim_of_a_paper_is_said_to_be_seen_or_not(self):
        for closed, said in ((2.2192, "Reproduced: "), (0.5, "NOT reproduced: ")):
            asked = {"experiment": "kim-tightness", "series": "closed form", "x_name": "N", "x": 3}
            self.show([made.experiment("kim-tightness")[0], made.record(command="reproduce", norm="inf", n=3, lower=closed, upper=2.8522, parameters=asked)])
            self.assertRegex(self.text("h1"), f"^L2 attention nearly attains its bound. {said}the input in closed form is {2.8522 - closed:.6g} below the bound")

    def test_what_only_describes_is_no_row(self):
        self.show(made.experiment() + made.losses())
        rows = len(made.experiment()) - 1 + len(made.losses()) - 1
        self.assertIn(f"{rows} records.", self.text("#records"))
        self.assertEqual(len(self.texts("#grid tbody tr[data-record]")), rows)
        self.assertIn(f"{rows} records", self.text("#provenance"))
        # but says what it describes, and who wrote it
        self.assertIn("L2 attention nearly attains its bound", self.texts("h2"))
        self.show([{**made.losses()[0], "command_line": "lipscope train x"}] + made.losses()[1:])
        self.assertIn("lipscope train x", self.text("#provenance"))

    def test_compare_says_where_nothing_is_in_common(self):
        self.show([made.record()], [made.record(layer=5)], command="compare")
        self.assertEqual(self.text("h1"), "These two files have no question in common.")

"""A page over hundreds of thousands of records, as merge makes files of, opens at once."""

import math
import random
import sys
import unittest

import records as made
from page_case import PageCase

LAYERS, HEADS, SAMPLES = 12, 12, 1400
SECONDS = 2.0


def lines():
    """200,000 measurements, in the order of a run; only their windows differ within a layer and head."""
    dice = random.Random(1)
    usual = made.record()
    for layer in range(LAYERS):
        for head in range(HEADS):
            for sample in range(SAMPLES):
                lower = (2.0 + layer) * math.exp(0.3 * dice.gauss(0, 1))
                yield {**usual, "layer": layer, "head": head, "sample": sample, "lower": lower, "upper": 4 * lower,
                       "upper_log10": math.log10(4 * lower), "upper_whp": 1.05 * lower, "upper_by": "split_paths",
                       "input": {"from": "text", "name": "book.txt", "sha256": f"{sample:064x}", "offset": 8 * sample}}


class ManyRecordsTest(PageCase):
    def test_it_opens_in_two_seconds_and_says_what_it_shows(self):
        total = LAYERS * HEADS * SAMPLES
        page = self.write_page(lines())
        # the work of the page itself, whatever else the machine does
        self.browser.cdp("Performance.enable", timeDomain="threadTicks")
        self.browser.open(page)
        metrics = {m["name"]: m["value"] for m in self.browser.cdp("Performance.getMetrics")["metrics"]}
        print(f"opened in {metrics['TaskDuration']:.2f} s of CPU, {page.stat().st_size / 1e6:.1f} MB", file=sys.stderr)
        self.assertLess(metrics["TaskDuration"], SECONDS)
        self.assertLess(page.stat().st_size, 6e6)
        said = self.text("#left-out")
        shown = self.browser.run("return data.count")
        self.assertLess(shown, 21_000)
        self.assertIn(f"{shown:,} of {total:,} records", said)
        self.assertIn(f"{shown:,} shown constants", self.text(".lede"))
        # the largest constant of all is there
        most = max(r["lower"] for r in lines())
        self.assertAlmostEqual(self.browser.run("return Math.max(...allRecords.map((i) => num(i, 'lower')))"), most,
                               delta=1e-5 * most)

    def test_few_records_are_all_there_and_nothing_is_said(self):
        self.show(made.audit())
        self.assertIsNone(self.text("#left-out"))


if __name__ == "__main__":
    unittest.main()

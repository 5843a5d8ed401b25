"""tools/frontier on records that are written by hand.

Usage: run_tests.py
"""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
THEIRS = "Newhouse25's architecture, "


def model(series, promised, proved, nll, formula=None, **placed):
    details = {"proved_rms": proved, "proved_token_norm": proved / 2, "proved_two_norm": 1.5, "last_tenth_nll": nll,
               "last_tenth_accuracy": 0.5, "newhouse25_nll": nll - 0.25, "newhouse25_accuracy": 0.625, "drawn_at": proved}
    if formula is not None:
        details["newhouse25_formula"] = formula
    details.update(placed)
    return [record(f"newhouse-shakespeare{part}", series, promised, value, details, steps=600)
            for part, value in (("", nll), (", windows", nll - 0.25))]


def record(figure, series, x, value, details=None, **parameters):
    found = {"details": details} if details else {}  # as lipscope writes it
    return {"parameters": {"experiment": figure, "series": series, "x": x, **parameters}, "value": value, **found}


class Frontier(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.place = Path(folder.name)
        self.document = self.place / "document.md"
        self.document.write_text("before\n<!-- table of tools/frontier -->\nold\n<!-- end of the table -->\nafter\n")

    def run_tool(self, records):
        (self.place / "records.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
        return subprocess.run(["/usr/bin/python3", ROOT / "tools" / "frontier", self.place / "records.jsonl", "--document",
                               self.document, "--picture", self.place / "frontier.png"], capture_output=True, text=True)

    def test_puts_models_in_the_order_of_their_proofs(self):
        records = [record("newhouse-shakespeare", "5-grams", 0.5, 1.6688), record("newhouse-shakespeare", "5-grams", 100, 1.6688),
                   record("newhouse-shakespeare, windows", "5-grams", 0.5, 1.3739),
                   record("newhouse-shakespeare, windows", "Newhouse25, soft cap (published)", 1.64, 1.35),
                   {"parameters": {"experiment": "newhouse-shakespeare"}, "value": None, "details": {}}]
        records += model(THEIRS + "proved here", 10, 9.99, 2.5, formula=1.75)
        records += model(THEIRS + "by its formula", 10, 9.99, 2.5, formula=1.75, drawn_at=1.75)
        records += model("position heads", 2, 1.999, 1.9422)
        done = self.run_tool(records)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater((self.place / "frontier.png").stat().st_size, 5000)
        text = self.document.read_text()
        self.assertTrue(text.startswith("before\n") and text.endswith("after\n"))
        self.assertNotIn("old", text)
        rows = [line for line in text.splitlines() if line.startswith("|")][2:]
        self.assertEqual(rows, [
            "| position heads | 1.999 | 0.9995 | 1.5 | – | 600 | 1.9422 | 50.0 % | 1.6922 | 62.5 % |",
            "| Newhouse25's architecture | 9.99 | 4.995 | 1.5 | 1.75 | 600 | 2.5000 | 50.0 % | 2.2500 | 62.5 % |",
            "| 5-grams | – | – | – | – | – | 1.6688 | | 1.3739 | |"])

    def test_refuses_other_records_and_documents_without_a_place(self):
        done = self.run_tool([record("kim-charlm", "dot", 1, 2.0)])
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("no records of reproduce newhouse-shakespeare", done.stderr)
        self.document.write_text("nothing here\n")
        done = self.run_tool(model("position heads", 2, 1.999, 1.9422))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("to write the table between", done.stderr)
        self.assertEqual(self.document.read_text(), "nothing here\n")


unittest.main()

"""tools/certificate-table on small models, from the folder to the table.

Usage: run_tests.py PROGRAM
"""

import csv
import json
import statistics
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "folders"))
from small_folders import Folder  # noqa: E402

PROGRAM = sys.argv.pop(1)


class CertificateTable(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.place = Path(folder.name)
        self.models, self.records = self.place / "models", self.place / "records"
        (self.models / "moby-dick").mkdir(parents=True)
        (self.models / "moby-dick" / "moby-dick.txt").write_text("the whale a sea the whales a sea the seas " * 200)
        Folder("bert").write(self.models / "minilm")
        Folder("llama").write(self.models / "stories15m")

    def run_tool(self, *more, code=0):
        done = subprocess.run(["/usr/bin/python3", ROOT / "tools" / "certificate-table", PROGRAM, "--models", self.models,
                               "--records", self.records, *more], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def rows(self, done):
        lines = [line for line in done.stdout.splitlines() if line.startswith("|")][2:]
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]

    def contents(self):
        return {f.name: f.read_bytes() for f in self.records.iterdir()}

    def test_has_a_row_for_each_model_length_and_certificate(self):
        each = self.place / "each.csv"
        rows = self.rows(self.run_tool("--lengths", "16,96", "--each", each))
        self.assertEqual([tuple(r[:4]) for r in rows],
                         [(model, n, f"{count} {what}", f"`{certificate}`")
                          for model, layers, heads in (("minilm", 2, 4), ("stories15m", 1, 4)) for n in ("16", "96")
                          for count, what, certificate in ((layers, "layers", "auto"), (layers, "layers", "tight"),
                                                           (heads, "heads", "auto"), (heads, "heads", "exact"))])
        with each.open() as file:
            lines = list(csv.DictReader(file))
        self.assertEqual(len(lines), 2 * 2 * (2 + 4) + 2 * 2 * (1 + 4))
        for line in lines:
            self.assertGreaterEqual(float(line["upper"]), float(line["lower"]))
            self.assertEqual(float(line["ratio"]), float(line["upper"]) / float(line["lower"]))
            self.assertEqual(line["head"] == "all", line["what"] == "layers")
            if line["certificate"] == "exact":
                self.assertLess(float(line["ratio"]), 1.001)
        for model, n, measured, certificate, median, smallest, largest, *_ in rows:
            ratios = [float(a["ratio"]) for a in lines if (a["model"], a["n"]) == (model, n)
                      and a["what"] in measured and f"`{a['certificate']}`" == certificate]
            self.assertAlmostEqual(float(median), statistics.median(ratios), delta=0.01)
            self.assertAlmostEqual(float(smallest), min(ratios), delta=0.01)
            self.assertAlmostEqual(float(largest.split(" (layer ")[0]), max(ratios), delta=0.01)

    def test_measures_nothing_twice(self):
        few = self.rows(self.run_tool("minilm", "--lengths", "96", "--rows", "layers:tight", "--layers", "1"))
        self.assertEqual([r[2] for r in few], ["1 layers"])
        name = "minilm, layers, tight, n 96.jsonl"
        first = self.contents()
        self.assertEqual(list(first), [name])
        all_layers = self.rows(self.run_tool("minilm", "--lengths", "96", "--rows", "layers:tight"))
        self.assertEqual([r[2] for r in all_layers], ["2 layers"])
        second = self.contents()
        self.assertTrue(second[name].startswith(first[name]))
        measured = [json.loads(line) for line in second[name].splitlines()]
        self.assertEqual([r["layer"] for r in measured if r["command"] == "measure"], [1, 0])
        again = self.run_tool("minilm", "--lengths", "96", "--rows", "layers:tight")
        self.assertEqual(self.contents(), second)
        # from records alone, with no program and no models
        for folder in ("minilm", "stories15m"):
            (self.models / folder / "model.safetensors").unlink()
        table = self.run_tool("minilm", "--lengths", "96", "--rows", "layers:tight,heads:exact", "--tables")
        self.assertEqual(table.stdout, again.stdout)

    def test_says_what_is_too_large_and_goes_on(self):
        # a program that refuses one certificate, as lipscope does for many tokens of wide layers
        refusing = self.place / "refusing"
        refusing.write_text(f'#!/bin/sh\ncase "$*" in *tight*) echo "lipscope: exact_norm needs a matrix of 9 rows at n = 96" >&2; exit 2;; '
                            f'*) exec "{PROGRAM}" "$@";; esac\n')
        refusing.chmod(0o755)
        done = subprocess.run(["/usr/bin/python3", ROOT / "tools" / "certificate-table", refusing, "minilm", "--models",
                               self.models, "--records", self.records, "--lengths", "96", "--rows",
                               "layers:tight,layers:auto"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("9 rows at n = 96", done.stderr)
        self.assertEqual([r[3] for r in self.rows(done)], ["`auto`"])

    def test_ends_with_what_the_program_says(self):
        (self.models / "minilm" / "config.json").unlink()
        done = self.run_tool("minilm", "--lengths", "16", code=1)
        self.assertIn("config.json", done.stderr)
        self.assertIn("exit code 2", done.stderr)
        self.assertIn("layers:CERTIFICATE", self.run_tool("--rows", "layer:tight", code=2).stderr)
        with tempfile.TemporaryDirectory() as empty:
            self.assertIn("tools/get-model", self.run_tool("--models", empty, code=1).stderr)


if __name__ == "__main__":
    unittest.main()

"""tools/atlas on a small model, from the folder to the tables.

Usage: run_tests.py PROGRAM
"""

import json
import math
import struct
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
LAYERS = 2


def slope(points):
    """Of ln value on ln n, by the formula of two sums."""
    x, y = [math.log(n) for n, _ in points], [math.log(v) for _, v in points]
    n = len(x)
    return (n * sum(a * b for a, b in zip(x, y)) - sum(x) * sum(y)) / (n * sum(a * a for a in x) - sum(x) ** 2)


class AtlasTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.place = Path(cls.temporary.name)
        models = cls.place / "models"
        (models / "moby-dick").mkdir(parents=True)
        (models / "moby-dick" / "moby-dick.txt").write_text("the whale a sea the whales a sea the seas " * 3000)
        Folder("bert").write(models / "minilm")
        cls.document = cls.place / "atlas.md"
        cls.document.write_text("before\n<!-- tables of tools/atlas -->\nold\n<!-- end of the tables -->\nafter\n")
        cls.first = cls.run_atlas()
        cls.written = cls.document.read_text()
        cls.sizes = cls.sizes_of_records()
        cls.second = cls.run_atlas()

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    @classmethod
    def run_atlas(cls, *more):
        return subprocess.run(
            ["/usr/bin/python3", ROOT / "tools" / "atlas", PROGRAM, "--quick", "--models", cls.place / "models",
             "--records", cls.place / "records", "--document", cls.document, "--picture", cls.place / "atlas.png",
             "--data", cls.place / "atlas.json", *more],
            capture_output=True, text=True)

    def test_models_that_were_measured_elsewhere_stay_in_the_tables(self):
        with tempfile.TemporaryDirectory() as folder:
            document, data = Path(folder) / "atlas.md", Path(folder) / "atlas.json"
            document.write_text("<!-- tables of tools/atlas --><!-- end of the tables -->")
            known = json.loads((self.place / "atlas.json").read_text())
            other = json.loads(json.dumps(known["models"]["minilm"]))
            other["growth"]["trained, none, attn"]["0"].update(exponent=0.125, low=0.1, high=0.15)
            data.write_text(json.dumps({"models": {"e5-small-v2": other, "minilm": other}, "heads": {"7": [1, 2, 3]}}))
            done = self.run_atlas("--tables", "--document", document, "--data", data)
            self.assertEqual(done.returncode, 0, done.stderr)
            written = document.read_text()
            of_minilm, of_other = written.index("## minilm"), written.index("## e5-small-v2")
            self.assertNotIn("| 0 | 0.125 ± ", written[of_minilm:of_other])
            self.assertIn("| 0 | 0.125 ± ", written[of_other:])
            self.assertIn("| 7 | 1.00 | 2.00 | 3.00 |", written)
            self.assertEqual(json.loads(data.read_text())["models"]["minilm"], known["models"]["minilm"])

    def test_many_machines_make_the_same_atlas(self):
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            (place / "atlas.md").write_text("<!-- tables of tools/atlas --><!-- end of the tables -->")
            where = ("--records", place / "records", "--document", place / "atlas.md", "--data", place / "atlas.json")
            for step in (("--plans",), ("--shard", "1/2"), ("--shard", "2/2"), ("--merge",)):
                done = self.run_atlas(*step, *where)
                self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads((place / "atlas.json").read_text()),
                             json.loads((self.place / "atlas.json").read_text()))
            # the parts are what was merged, not measured again
            merged = (place / "records" / "minilm, trained, none, attn.jsonl").read_text()
            self.assertIn("1-of-2.jsonl", merged)
            self.assertIn("2-of-2.jsonl", merged)

    def test_parts_that_were_measured_elsewhere_stay_beside_those_of_here(self):
        with tempfile.TemporaryDirectory() as folder:
            place, here = Path(folder), "minilm, untrained, causal, residual.jsonl"
            (place / "records").mkdir()
            (place / "records" / here).write_bytes((self.place / "records" / here).read_bytes())
            (place / "atlas.md").write_text("<!-- tables of tools/atlas --><!-- end of the tables -->")
            known = json.loads((self.place / "atlas.json").read_text())
            elsewhere = json.loads(json.dumps(known))
            for part in elsewhere["models"]["minilm"]["growth"].values():
                part["0"].update(exponent=0.125, low=0.1, high=0.15)
            (place / "atlas.json").write_text(json.dumps(elsewhere))
            done = self.run_atlas("--tables", "--records", place / "records", "--document", place / "atlas.md",
                                  "--data", place / "atlas.json")
            self.assertEqual(done.returncode, 0, done.stderr)
            expected = elsewhere["models"]["minilm"]
            of_here = "untrained, causal, residual"
            expected["growth"][of_here] = known["models"]["minilm"]["growth"][of_here]
            self.assertEqual(json.loads((place / "atlas.json").read_text())["models"]["minilm"], expected)

    @classmethod
    def sizes_of_records(cls):
        return {f.name: f.stat().st_size for f in (cls.place / "records").glob("*.jsonl")}

    def records(self, name):
        with (self.place / "records" / name).open() as file:
            return [json.loads(line) for line in file]

    def rows(self, heading):
        """Of the first table after these words: lists of cells by their first."""
        lines = self.written[self.written.index(heading):].splitlines()
        start = next(i for i, line in enumerate(lines) if line.startswith("|---"))
        rows = {}
        for line in lines[start + 1:]:
            if not line.startswith("|"):
                break
            cells = [c.strip() for c in line.strip("|").split("|")]
            rows[cells[0]] = cells[1:]
        return rows

    def test_it_ends_well_and_writes_everything(self):
        self.assertEqual(self.first.returncode, 0, self.first.stderr)
        self.assertTrue(self.written.startswith("before\n"))
        self.assertTrue(self.written.endswith("\nafter\n"))
        self.assertNotIn("\nold\n", self.written)
        self.assertGreater((self.place / "atlas.png").stat().st_size, 5000)
        self.assertGreater((self.place / "records" / "atlas.html").stat().st_size, 5000)
        self.assertEqual(len(self.sizes), 2 * 2 * 2 + 2)

    def test_a_second_run_measures_nothing_and_writes_the_same(self):
        self.assertEqual(self.second.returncode, 0, self.second.stderr)
        self.assertEqual(self.sizes_of_records(), self.sizes)
        self.assertEqual(self.document.read_text(), self.written)

    def test_the_exponents_are_those_of_the_records(self):
        columns = [(trained, mask, map_name) for trained in ("trained", "untrained") for mask in ("none", "causal")
                   for map_name in ("attn", "residual")]
        rows = self.rows("## minilm")
        self.assertEqual(list(rows), [str(n) for n in range(LAYERS)])
        for column, (trained, mask, map_name) in enumerate(columns):
            measured = [r for r in self.records(f"minilm, {trained}, {mask}, {map_name}.jsonl")
                        if r["command"] == "measure"]
            self.assertEqual(len(measured), 7 * 4 * LAYERS)
            for layer in range(LAYERS):
                self.assertEqual({r["mask"] for r in measured} | {r["map"] for r in measured}, {mask, map_name})
                expected = slope([(r["n"], r["lower"]) for r in measured if r["layer"] == layer])
                self.assertAlmostEqual(float(rows[str(layer)][column].split(" ± ")[0]), expected, delta=6e-4)

    def test_values_of_the_script_have_their_exponents(self):
        rows = self.rows("Attention under mask none")
        records = [r for r in self.records("minilm, script.jsonl") if "script_value" in r.get("details", {})]
        for layer in range(LAYERS):
            points = [(r["n"], r["details"]["script_value"]) for r in records
                      if r["layer"] == layer and not r["model"].startswith("random")]
            self.assertEqual(len(points), 7 * 4)
            self.assertAlmostEqual(float(rows[str(layer)][-1].split(" ± ")[0]), slope(points), delta=6e-4)

    def test_shares_of_the_first_token_are_those_of_the_records(self):
        rows = self.rows("Attention under mask none")
        records = [r for r in self.records("minilm, tokens.jsonl") if r["command"] == "measure"]
        for layer in range(LAYERS):
            shares = [r["details"]["input_share"][0] for r in records if r["layer"] == layer]
            self.assertEqual(len(shares), 4)
            self.assertAlmostEqual(float(rows[str(layer)][5].split()[0]), 100 * sum(shares) / 4, delta=0.51)

    def test_untrained_weights_have_the_spread_of_the_configuration(self):
        content = (self.place / "records" / "untrained" / "minilm" / "model.safetensors").read_bytes()
        size, = struct.unpack("<Q", content[:8])
        header = json.loads(content[8:8 + size])
        values = []
        for name, tensor in header.items():
            begin, end = tensor["data_offsets"]
            numbers = struct.unpack(f"<{(end - begin) // 4}f", content[8 + size + begin:8 + size + end])
            if len(tensor["shape"]) == 1:
                self.assertEqual(set(numbers), {0.0 if name.endswith("bias") else 1.0}, name)
            else:
                values += numbers
        self.assertAlmostEqual(math.sqrt(sum(v * v for v in values) / len(values)), 0.02, delta=0.002)


if __name__ == "__main__":
    unittest.main()

"""Plans, shards and merge, as a user of a cluster runs them, on a small model.

Usage: run_tests.py PROGRAM
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "folders"))
from small_folders import Folder  # noqa: E402

PROGRAM = os.path.abspath(sys.argv.pop(1))
SHARDINGS = 20


def read(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def without_times(record):
    """What must be the same in every bit: all but times and machines."""
    record = dict(record)
    for field in ("seconds", "command_line", "machine", "build", "cpu", "line_sha256"):
        record.pop(field, None)
    if "details" in record:
        record["details"] = {k: v for k, v in record["details"].items() if not k.endswith("seconds")}
    return json.dumps(record)


def lines_without_times(path):
    return [without_times(record) for record in read(path)]


class ClusterTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        Folder("bert").write(self.folder / "bert")
        # every window is another one
        dice = random.Random(1)
        words = ("the", "whale", "sea", "a", "whales", "seas")
        (self.folder / "text.txt").write_text(" ".join(dice.choice(words) for _ in range(2000)))

    def start(self, *words):
        return subprocess.Popen([PROGRAM, *map(str, words)], cwd=self.folder, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_WAIT_POLICY": "passive"})

    def run_program(self, *words):
        process = self.start(*words)
        out, err = process.communicate(timeout=300)
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def good(self, *words):
        done = self.run_program(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def refused(self, code, expected, *words):
        done = self.run_program(*words)
        self.assertEqual(done.returncode, code, done.stderr)
        for word in expected:
            self.assertIn(word, " ".join(done.stderr.split()))
        return done

    def plan(self, *asked):
        """The plan of this command line, and the file of an undisturbed single run."""
        self.good("plan", *asked, "--out", "plan.jsonl")
        self.good(*asked, "--out", "single.jsonl")
        return asked[0]

    def shard(self, command, number, count, *more, plan="plan.jsonl", out=None):
        out = out or f"part-{number}.jsonl"
        self.good(command, "--plan", plan, "--shard", f"{number}/{count}", "--out", out, "--quiet", *more)
        return out

    def merge(self, *files):
        return self.good("merge", "--plan", "plan.jsonl", *files, "--out", "merged.jsonl")

    def expect_single_run(self):
        self.assertEqual(lines_without_times(self.folder / "merged.jsonl"),
                         lines_without_times(self.folder / "single.jsonl"))

    MEASURE = ("measure", "bert", "--text", "text.txt", "--lengths", "5,6,7,9", "--samples", "7", "--heads", "each")

    def test_shards_of_every_command_merge_to_the_file_of_a_single_run(self):
        layer = ("--random", "d=6,heads=2,scale=1", "--lengths", "3,4", "--heads", "each", "--radius", "2")
        for asked in (self.MEASURE,
                      ("bound", *layer),
                      ("bound", "--random", "d=6,heads=2,scale=1", "--lengths", "3,4"),  # inputs at which it grows
                      ("search", *layer, "--restarts", "2", "--max-evaluations", "20", "--budget", "0")):
            with self.subTest(" ".join(asked)):
                command = self.plan(*asked)
                parts = [self.shard(command, i, 3) for i in (1, 2, 3)]
                self.assertIn("Answer:", self.merge(*parts).stdout)
                self.expect_single_run()
                for file in ("single.jsonl", "merged.jsonl", *parts):
                    (self.folder / file).unlink()

    def test_certify_in_shards(self):
        self.good("train", "text.txt", "--out", "model", "--layers", "1", "--width", "8", "--heads", "2", "--context",
                  "8", "--steps", "2", "--batch", "2", "--quiet")
        command = self.plan("certify", "model", "--text", "text.txt", "--positions", "20", "--iterations", "3")
        parts = [self.shard(command, i, 3) for i in (1, 2, 3)]
        self.merge(*parts)
        self.expect_single_run()

    def test_a_single_run_has_growth_and_so_has_the_merged_file(self):
        self.plan(*self.MEASURE)
        self.merge(*[self.shard("measure", i, 2) for i in (1, 2)])
        fits = [r for r in read(self.folder / "merged.jsonl") if r["command"] == "growth"]
        self.assertEqual(len(fits), 4)  # of two layers with two heads
        self.assertFalse([r for r in read(self.folder / "part-1.jsonl") if r["command"] == "growth"])
        self.expect_single_run()

    def test_a_window_that_comes_again_is_written_for_each_of_its_places(self):
        (self.folder / "text.txt").write_text("the whale a sea " * 100)
        self.plan("measure", "bert", "--text", "text.txt", "--lengths", "2,4", "--samples", "9")
        self.merge(*[self.shard("measure", i, 4) for i in (1, 2, 3, 4)])
        self.expect_single_run()
        self.merge("part-2.jsonl")  # has both windows of two tokens, at other places
        self.assertGreater(len([r for r in read(self.folder / "merged.jsonl") if r["n"] == 4]), 9)

    def test_what_is_missing_is_the_next_plan(self):
        self.plan(*self.MEASURE)
        self.shard("measure", 1, 3)
        self.shard("measure", 3, 3)
        done = self.merge("part-1.jsonl", "part-3.jsonl")
        self.assertIn("merged.missing.jsonl", done.stdout)
        self.refused(3, [], "merge", "--plan", "plan.jsonl", "part-1.jsonl", "--out", "merged.jsonl", "--strict")
        self.merge("part-1.jsonl", "part-3.jsonl")
        missing = read(self.folder / "merged.missing.jsonl")
        here = [r for r in read(self.folder / "merged.jsonl") if r["command"] == "measure"]
        self.assertEqual(len(missing) - 1 + len(here), 4 * 7 * 4)
        for i in (1, 2):
            self.shard("measure", i, 2, plan="merged.missing.jsonl", out=f"again-{i}.jsonl")
        self.merge("part-1.jsonl", "again-2.jsonl", "part-3.jsonl", "again-1.jsonl")
        self.expect_single_run()
        self.assertEqual(len(read(self.folder / "merged.missing.jsonl")), 1)

    def test_random_shardings_with_kills_merge_to_the_same_lines(self):
        command = self.plan(*self.MEASURE, "--enclose", "1.5")
        expected = lines_without_times(self.folder / "single.jsonl")
        dice = random.Random(7)
        killed = 0
        for turn in range(SHARDINGS):
            count = dice.randint(1, 9)
            parts = []
            for i in range(1, count + 1):
                out = f"turn-{turn}-{i}.jsonl"
                parts.append(out)
                for _ in range(dice.randint(0, 2)):
                    process = self.start(command, "--plan", "plan.jsonl", "--shard", f"{i}/{count}", "--out", out,
                                         "--resume", "--quiet")
                    time.sleep(dice.uniform(0.0, 0.15))
                    process.send_signal(signal.SIGKILL)
                    process.communicate()
                    killed += process.returncode == -signal.SIGKILL
                self.shard(command, i, count, "--resume", out=out)
            dice.shuffle(parts)
            # some of it twice, by other shards
            self.shard(command, 1, 5, out=f"turn-{turn}-twice.jsonl")
            self.merge(*parts, f"turn-{turn}-twice.jsonl")
            self.assertEqual(lines_without_times(self.folder / "merged.jsonl"), expected, f"turn {turn}, {count} shards")
        self.assertGreater(killed, 5)

    def test_a_plan_that_does_not_fit_any_more_is_refused(self):
        self.plan(*self.MEASURE)
        text = self.folder / "text.txt"
        text.write_text("a " + text.read_text())
        self.refused(2, ["plan.jsonl: line", "is another one now"], "measure", "--plan", "plan.jsonl")
        self.refused(2, ["is for 'lipscope measure', not 'bound'"], "bound", "--plan", "plan.jsonl")
        self.refused(2, ["--shard 3/2", "from 1/K to K/K"], "measure", "--plan", "plan.jsonl", "--shard", "3/2")
        self.refused(2, ["--plan"], "measure", "bert", "--text", "text.txt", "--shard", "1/2")
        self.refused(2, ["No such file"], "measure", "--plan", "none.jsonl")
        self.refused(2, ["single.jsonl: line 1"], "measure", "--plan", "single.jsonl")
        self.refused(2, ["--out"], "plan", *self.MEASURE)
        self.refused(2, ["--resume is for a run that answers"], "plan", *self.MEASURE, "--out", "p.jsonl", "--resume")
        self.refused(2, ["is not a file of records"], *self.MEASURE, "--out", "plan.jsonl")
        self.refused(2, ["plan.jsonl: line 1: a plan"], "report", "plan.jsonl")

    def test_tampered_foreign_and_truncated_journals(self):
        self.plan(*self.MEASURE)
        self.shard("measure", 1, 2)
        self.shard("measure", 2, 2)
        part = self.folder / "part-1.jsonl"
        whole = part.read_text()
        lines = whole.splitlines(keepends=True)
        merge = ("merge", "--plan", "plan.jsonl", "part-1.jsonl", "part-2.jsonl", "--out", "merged.jsonl")
        dice = random.Random(3)

        # any byte that is changed is noticed, with the file and the line
        for _ in range(40):
            number = dice.randrange(len(lines))
            at = dice.randrange(len(lines[number]) - 1)
            changed = chr(33 + (ord(lines[number][at]) - 32) % 94)
            damaged = lines[number][:at] + changed + lines[number][at + 1:]
            part.write_text("".join(lines[:number] + [damaged] + lines[number + 1:]))
            done = self.run_program(*merge)
            place = f"part-1.jsonl: line {number + 1}"
            if number == len(lines) - 1 and done.returncode == 0:
                self.assertIn(f"{place} is incomplete", " ".join(done.stderr.split()))
                (self.folder / "merged.jsonl").unlink()
                continue
            self.assertIn(done.returncode, (1, 2, 4), damaged)
            self.assertIn(place, " ".join(done.stderr.split()))
            self.assertFalse((self.folder / "merged.jsonl").exists())

        # another audit
        self.good("measure", "bert", "--text", "text.txt", "--lengths", "4", "--samples", "1", "--out", "other.jsonl")
        part.write_text(whole + (self.folder / "other.jsonl").read_text())
        self.refused(2, [f"part-1.jsonl: line {len(lines) + 1}: answers no question of plan.jsonl"], *merge)
        self.refused(2, ["plan.jsonl: line 1: a plan, not records"], "merge", "--plan", "plan.jsonl",
                     "plan.jsonl", "--out", "merged.jsonl")

        # cut off in the middle of a record: reported, and the question is missing
        part.write_text(whole[:-40])
        done = self.good(*merge)
        self.assertIn(f"part-1.jsonl: line {len(lines)} is incomplete", " ".join(done.stderr.split()))
        self.assertEqual(len(read(self.folder / "merged.missing.jsonl")), 2)

        # a file of which nothing can be read is refused; one without a line is of a worker that had no answer yet
        part.write_text(lines[0][:-40])
        self.refused(2, ["part-1.jsonl: nothing in it can be read"], *merge)
        part.write_text("")
        self.good(*merge)

        # overlapping
        part.write_text(whole + "".join(lines[:5]))
        self.assertIn("5 records came more than once", " ".join(self.good(*merge).stdout.split()))
        self.expect_single_run()

    def test_two_answers_of_one_build_and_kind_of_cpu_are_both_shown(self):
        self.plan(*self.MEASURE)
        lines = (self.folder / "single.jsonl").read_text().splitlines(keepends=True)
        record = json.loads(lines[4])
        record["lower"] *= 1 + 1e-12
        (self.folder / "other.jsonl").write_text(json.dumps(record) + "\n")
        merge = ("merge", "--plan", "plan.jsonl", "single.jsonl", "other.jsonl", "--out", "merged.jsonl")
        done = self.refused(1, ["single.jsonl: line 5", "other.jsonl: line 1", "which must agree"], *merge)
        self.assertIn(str(json.loads(lines[4])["lower"]), done.stderr)
        self.assertIn(str(record["lower"]), done.stderr)
        self.assertFalse((self.folder / "merged.jsonl").exists())
        # the same from another kind of CPU: the first is kept
        record["cpu"] = "another one"
        (self.folder / "other.jsonl").write_text(json.dumps(record) + "\n")
        self.assertIn("single.jsonl: line 5 is kept", " ".join(self.good(*merge).stderr.split()))
        self.expect_single_run()
        record["lower"] *= 1.5
        record["upper"] = record["upper_whp"] = None
        record["upper_log10"] = None
        (self.folder / "other.jsonl").write_text(json.dumps(record) + "\n")
        done = self.run_program(*merge)
        self.assertEqual(done.returncode, 1, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=1)

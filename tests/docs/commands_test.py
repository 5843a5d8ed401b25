"""The commands that the documents show are run, each document in a folder of
its own, one command after the other. Models, texts and tensors are small
stand-ins. What takes long has a comment before its block:

    <!-- not run: takes minutes -->
"""

import collections
import os
import pathlib
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import markdown
import stand_ins

SECONDS = 120  # for one command; on a quiet machine none takes more than a few


class CommandsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.program = os.environ["LIPSCOPE_PROGRAM"]
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="lipscope-docs-"))
        (cls.folder / "stand-ins").mkdir()
        stand_ins.write_all(cls.folder / "stand-ins")
        cls.run_count = 0
        cls.documents_run = set()
        cls.left_out = collections.Counter()
        cls.slowest = (0.0, "")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)
        print(f"\n{cls.run_count} commands of the documents were run", file=sys.stderr)
        for reason, count in sorted(cls.left_out.items()):
            print(f"{count} commands were NOT run: {reason}", file=sys.stderr)
        spent = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = spent.ru_utime + spent.ru_stime
        print(f"{seconds:.1f} s of CPU; slowest: {cls.slowest[0]:.1f} s, {cls.slowest[1]}", file=sys.stderr)

    def start(self, work, words):
        begin = time.monotonic()
        done = subprocess.run(
            [self.program, *words],
            cwd=work,
            env={**os.environ, "OMP_WAIT_POLICY": "passive"},  # beside other tests
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        cls = type(self)
        cls.slowest = max(cls.slowest, (time.monotonic() - begin, shlex.join(words)))
        return done

    def train_stand_in(self, work, words):
        run = stand_ins.folder_of_run(words)
        if run and not (work / run).exists():
            options = stand_ins.training_of(run.removeprefix("runs/"))
            done = self.start(work, ["train", "shakespeare.txt", "--out", run, *options])
            self.assertEqual(done.returncode, 0, done.stderr)

    def check_output(self, shown, printed):
        """What the document shows is what the program prints now, but for the
        numbers: the same columns, and the sentence at the end."""
        for line in shown:
            names = line.split()
            if "status" in names or "regime" in names:
                headers = [each.split() for each in printed.splitlines()]
                self.assertIn(names, headers, "the program prints no table with these columns")
        if "\nAnswer: " in printed:
            self.assertTrue(
                any(line.startswith("Answer: ") for line in shown),
                "the program ends with a line 'Answer: …', the document shows none",
            )

    def run_block(self, work, block, following):
        done = None
        for words in markdown.commands(block):
            if block.not_run:
                type(self).left_out[block.not_run] += 1
                continue
            with self.subTest(f"{block.where()}: lipscope {shlex.join(words)}"):
                self.train_stand_in(work, words)
                done = self.start(work, words)
                type(self).run_count += 1
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotIn("Traceback", done.stderr)
        if done and following and following.line == block.line + len(block.lines) + 2:
            with self.subTest(f"{following.where()}: the output that is shown"):
                self.check_output(following.lines, done.stdout)

    def run_document(self, path):
        document = markdown.read(path)
        self.documents_run.add(path)
        blocks = document.blocks
        if not any(True for block in blocks for _ in markdown.commands(block)):
            return
        work = self.folder / document.name().replace("/", "-")
        shutil.copytree(self.folder / "stand-ins", work, symlinks=True)
        for block, following in zip(blocks, blocks[1:] + [None]):
            if block.language == "python" and "import lipscope" in block.lines:
                continue  # python/tests/test_docs.py runs it, with the package
            if block.language == "python":
                exec(compile("\n".join(block.lines), block.where(), "exec"), {"open": opener(work)})
            else:
                self.run_block(work, block, following)

    def test_z_most_commands_were_run(self):
        if len(self.documents_run) == len(markdown.DOCUMENTS):
            self.assertGreater(self.run_count, 40)


def add_test(path):
    """A test for each document: CommandsTest.test_docs_bounds_md."""
    name = re.sub(r"\W", "_", str(path.relative_to(markdown.ROOT)))
    setattr(CommandsTest, f"test_{name}", lambda self: self.run_document(path))


for each in markdown.DOCUMENTS:
    add_test(each)


def opener(work):
    """open() with names taken from the folder work."""
    return lambda name, *how: open(work / name, *how)

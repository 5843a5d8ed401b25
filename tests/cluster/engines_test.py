"""measure(..., executor=E) on Dask, Ray, MPI and a process pool whose workers are killed at random: the file of a single
run, on one host and on several.

`make check-cluster` runs this in the environment of tools/cluster-environment. LIPSCOPE_PROGRAM names the program.
LIPSCOPE_CLUSTER_MODEL and LIPSCOPE_CLUSTER_TEXT are a real model and a text, LIPSCOPE_CLUSTER_SAMPLES how many windows
of it, LIPSCOPE_CLUSTER_LENGTHS of how many tokens (32): otherwise a small model is made. LIPSCOPE_CLUSTER_KILLS is how
often a worker is killed (10).
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "folders"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from small_folders import Folder  # noqa: E402

SCRIPT = ROOT / "examples" / "cluster" / "measure_on.py"
KILLS = int(os.environ.get("LIPSCOPE_CLUSTER_KILLS", "10"))
SECONDS = 1800


def lines(path):
    """Of a file, all but times and machines."""
    found = []
    for line in open(path):
        record = json.loads(line)
        for field in ("seconds", "command_line", "machine", "build", "cpu", "line_sha256"):
            record.pop(field, None)
        if "details" in record:
            record["details"] = {k: v for k, v in record["details"].items() if not k.endswith("seconds")}
        found.append(json.dumps(record))
    return found


@pytest.fixture(scope="session")
def asked(tmp_path_factory):
    """Model, text, options, and the file of a single run."""
    folder = tmp_path_factory.mktemp("asked")
    model, text = os.environ.get("LIPSCOPE_CLUSTER_MODEL"), os.environ.get("LIPSCOPE_CLUSTER_TEXT")
    samples = os.environ.get("LIPSCOPE_CLUSTER_SAMPLES", "400")
    options = ["--lengths", os.environ.get("LIPSCOPE_CLUSTER_LENGTHS", "32"), "--samples", samples]
    if not model:
        model, text = folder / "bert", folder / "text.txt"
        Folder("bert").write(model)
        dice = random.Random(1)
        words = ("the", "whale", "sea", "a", "whales", "seas")
        text.write_text(" ".join(dice.choice(words) for _ in range(80 * int(samples))))
        options = ["--lengths", "12,14,16,20", "--samples", samples, "--heads", "each"]
    single = folder / "single.jsonl"
    subprocess.run([os.environ["LIPSCOPE_PROGRAM"], "measure", model, "--text", text, *options, "--out", single,
                    "--quiet"], check=True, stdout=subprocess.DEVNULL)
    return {"model": str(model), "text": str(text), "options": options, "single": lines(single)}


def command(engine, asked, out, *more):
    return [sys.executable, *(["-m", "mpi4py.futures"] if engine == "mpi" else []), str(SCRIPT), engine, asked["model"],
            asked["text"], str(out), *asked["options"], *more]


def children_of(pid):
    """All processes below this one, by id."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
    found = []
    for child in parents:
        up = child
        while up in parents and up != pid:
            up = parents[up]
        if up == pid and child != pid:
            found.append(child)
    return found


def is_at_work(pid, model):
    """Whether the process holds the weights: a worker that is still starting is none yet, and Dask's nanny gives up on
    one that dies then."""
    try:
        return f"{model}/" in Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return False


class Killer(threading.Thread):
    """Kills a worker now and then, as soon as some answers are there."""

    def __init__(self, process, model, out, kills, seed=0):
        super().__init__(daemon=True)
        self.process, self.model, self.out, self.left = process, model, Path(out), kills
        self.killed, self.dice = 0, random.Random(seed)

    def run(self):
        before = self.lines()
        while self.left > 0 and self.process.poll() is None:
            time.sleep(self.dice.uniform(0.1, 0.6))
            workers = [p for p in children_of(self.process.pid) if is_at_work(p, self.model)]
            if not workers or self.lines() <= before:
                continue
            try:
                os.kill(self.dice.choice(workers), signal.SIGKILL)
            except ProcessLookupError:
                continue
            self.killed += 1
            self.left -= 1
            before = self.lines()

    def lines(self):
        return self.out.read_bytes().count(b"\n") if self.out.exists() else 0


def run_with_kills(words, model, out, kills, seed=0, env=None):
    with open(f"{out}.log", "a") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, env={**os.environ, **(env or {})})
        killer = Killer(process, model, out, kills, seed)
        killer.start()
        code = process.wait(timeout=SECONDS)
    killer.join()
    return code, killer.killed


@pytest.mark.parametrize("engine", ["dask", "ray"])
def test_an_engine_that_survives_its_workers_gives_the_file_of_a_single_run(engine, asked, tmp_path):
    out = tmp_path / "audit.jsonl"
    code, killed = run_with_kills(command(engine, asked, out, "--workers", "2"), asked["model"], out, KILLS)
    log = Path(f"{out}.log").read_text()
    assert code == 0, log
    assert lines(out) == asked["single"]
    print(f"{engine}: {killed} workers killed")
    assert killed >= 1, log


@pytest.mark.parametrize("engine", ["pool", "mpi"])
def test_an_engine_that_does_not_survive_leaves_its_journal_and_the_next_call_goes_on(engine, asked, tmp_path):
    out = tmp_path / "audit.jsonl"
    words = command(engine, asked, out, "--workers", "2")
    if engine == "mpi":
        words = ["mpirun", "-n", "3", "--oversubscribe", *words]
    env = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    killed, calls, kept = 0, 0, 0
    while True:
        calls += 1
        code, now = run_with_kills(words, asked["model"], out, 1 if killed < KILLS else 0, seed=calls, env=env)
        killed += now
        if code == 0:
            break
        assert now == 1, Path(f"{out}.log").read_text()
        if engine == "pool":
            assert "Under way were" in Path(f"{out}.log").read_text()
        assert Path(f"{out}.under-way").exists()
        here = len(lines(out))
        assert here >= kept, "an answer was lost"
        kept = here
    print(f"{engine}: {killed} workers killed in {calls} calls")
    assert killed >= 1
    assert lines(out) == asked["single"]
    if calls > 1:
        assert "which now come last" in Path(f"{out}.log").read_text()


# ---- several hosts


@contextmanager
def hosts(names):
    """Network namespaces on one bridge: {name: address}; this process has the first address."""
    bridge, made = "lips0", []
    run = lambda *w: subprocess.run(list(map(str, w)), check=True)  # noqa: E731
    try:
        run("ip", "link", "add", bridge, "type", "bridge")
        made.append(("ip", "link", "del", bridge))
        run("ip", "addr", "add", "10.231.77.1/24", "dev", bridge)
        run("ip", "link", "set", bridge, "up")
        addresses = {}
        for number, name in enumerate(names, 2):
            space, link = f"lips-{name}", f"lips{number}"
            run("ip", "netns", "add", space)
            made.append(("ip", "netns", "del", space))
            run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", space)
            run("ip", "link", "set", link, "master", bridge, "up")
            addresses[name] = f"10.231.77.{number}"
            run("ip", "-n", space, "addr", "add", f"{addresses[name]}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                run("ip", "-n", space, "link", "set", device, "up")
        yield addresses
    finally:
        for words in reversed(made):
            subprocess.run(words)


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("ip"), reason="network namespaces need root and iproute2")
def test_dask_on_several_hosts_loses_a_whole_host_and_gives_the_file_of_a_single_run(asked, tmp_path):
    out = tmp_path / "audit.jsonl"
    dask = str(Path(sys.executable).parent / "dask")
    with hosts(["scheduler", "one", "two", "three"]) as addresses:
        processes = {}
        address = f"tcp://{addresses['scheduler']}:8786"

        def start(name, *words):
            with open(tmp_path / f"{name}.log", "w") as log:
                processes[name] = subprocess.Popen(["ip", "netns", "exec", f"lips-{name}", dask, *words], stdout=log,
                                                   stderr=log, cwd=tmp_path, start_new_session=True)

        def stop(name):
            try:
                os.killpg(processes.pop(name).pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

        try:
            start("scheduler", "scheduler", "--host", addresses["scheduler"], "--port", "8786", "--no-dashboard")
            for name in ("one", "two"):
                start(name, "worker", address, "--nthreads", "1", "--no-dashboard", "--death-timeout", "60")
            measuring = subprocess.Popen(command("dask", asked, out, "--scheduler", address), stdout=subprocess.PIPE,
                                         stderr=subprocess.STDOUT, text=True)
            before = time.monotonic()
            while not (out.exists() and out.read_bytes().count(b"\n") > 20):
                assert measuring.poll() is None, measuring.stdout.read()
                assert time.monotonic() - before < SECONDS
                time.sleep(0.1)
            stop("two")  # its processes and its network, without a word
            subprocess.run(["ip", "-n", "lips-two", "link", "set", "eth0", "down"], check=True)
            start("three", "worker", address, "--nthreads", "1", "--no-dashboard", "--death-timeout", "60")
            said, _ = measuring.communicate(timeout=SECONDS)
            assert measuring.returncode == 0, said
        finally:
            for name in list(processes):
                stop(name)
    assert lines(out) == asked["single"]


# ---- the array of SLURM, whose tasks are started here one by one


def test_the_tasks_of_a_slurm_array_merge_to_the_file_of_a_single_run(asked, tmp_path):
    program = os.environ["LIPSCOPE_PROGRAM"]
    plan, parts, out = tmp_path / "plan.jsonl", tmp_path / "parts", tmp_path / "audit.jsonl"
    subprocess.run([program, "plan", "measure", asked["model"], "--text", asked["text"], *asked["options"], "--out", plan],
                   check=True)
    for task in (3, 1, 2):
        env = {**os.environ, "LIPSCOPE": program, "SLURM_ARRAY_TASK_ID": str(task), "SLURM_ARRAY_TASK_COUNT": "3",
               "SLURM_CPUS_PER_TASK": "1"}
        words = [str(ROOT / "examples" / "cluster" / "slurm_array.sh"), str(plan), str(parts)]
        if task == 1:  # sent back once
            process = subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL)
            time.sleep(0.5)
            process.kill()
            process.wait()
        subprocess.run(words, check=True, env=env, stdout=subprocess.DEVNULL)
    subprocess.run([program, "merge", "--plan", plan, *sorted(parts.glob("*.jsonl")), "--out", out], check=True)
    assert lines(out) == asked["single"]

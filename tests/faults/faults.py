#!/usr/bin/python3
"""Harms one process of several that train together, and checks what becomes of the run.

    faults.py HEED [--kills N] [--limit SECONDS] [--seed N] [CASE…]

Every case starts `mpirun -n N heed train` on a small text and does something to one process. The job
has to end within 30 seconds, with one message that names the process and the reason; its last
checkpoint has to be whole; and resumed by another number of processes, the run has to go through the
losses of one that nothing happened to. Exits with 77 where there is no mpirun.
"""
import argparse
import contextlib
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

LONGEST_END = 30  # seconds from the harm to the end of the last process
ENDLESS = 1_000_000  # steps, more than any machine gets through while a case lasts
SETTINGS = {
    "layers": 2, "channels": 32, "heads": 2, "context": 32, "batch_size": 8, "evaluate_every": 50,
    "evaluation_batches": 2, "checkpoint_every": 5, "sample_every": 0, "precision": "f32",
    "warmup_steps": 10, "dropout": 0.1, "learning_rate": 1e-3,
}


class Failure(Exception):
    pass


def expect(condition, message):
    if not condition:
        raise Failure(message)


def open_mpi_version():
    """The first number of it; 0 of another MPI."""
    said = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"\(Open MPI\) (\d+)", said)
    return int(found[1]) if found else 0


def words():
    """Text of a small language, so that losses fall."""
    chosen = random.Random(5)
    return "".join(chosen.choice(["the ", "cat ", "dog ", "sat ", "saw ", "a ", "red ", "mat. "])
                   for _ in range(8000))


class Job:
    """A run of several processes, under way."""

    def __init__(self, bench, run, processes, options, limit, before, grace):
        environment = dict(os.environ, HEED_THREADS="1", HEED_SILENCE_LIMIT=str(limit),
                           OMPI_MCA_odls_base_sigkill_timeout=str(grace))
        for name in ("OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"):
            environment[name] = environment[name + "_CONFIRM"] = "1"
        self.run, self.processes = run, processes
        command = [str(bench.heed), "train", "--out", str(run), *options]
        if processes > 1:
            # `before` is shell code that each process runs first, with its number in $rank.
            shell = 'rank=${OMPI_COMM_WORLD_RANK:-$PMIX_RANK}; ' + before + '; exec "$0" "$@"'
            command = ["mpirun", "--oversubscribe", "-n", str(processes), "sh", "-c", shell, *command]
        self.err = tempfile.TemporaryFile("w+")
        self.child = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.DEVNULL, stderr=self.err,
                                      start_new_session=True)

    def pids(self):
        """Of its processes, by rank."""
        found = {}
        for folder in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                arguments = (folder / "cmdline").read_bytes().split(b"\0")
                if arguments[1:2] != [b"train"] or str(self.run).encode() not in arguments:
                    continue
                names = dict(entry.split(b"=", 1)
                             for entry in (folder / "environ").read_bytes().split(b"\0") if entry)
                rank = names.get(b"OMPI_COMM_WORLD_RANK", names.get(b"PMIX_RANK", b"0"))
                found[int(rank)] = int(folder.name)
        return found

    def wait_for(self, condition, what):
        end = time.monotonic() + 120
        while not condition():
            expect(self.child.poll() is None, f"ended before {what}:\n{self.text()}")
            expect(time.monotonic() < end, f"no {what} in two minutes:\n{self.text()}")
            time.sleep(0.01)

    def wait_for_step(self, step):
        self.wait_for(lambda: last_step(self.run) >= step, f"step {step}")

    def wait_for_processes(self):
        self.wait_for(lambda: len(self.pids()) == self.processes, "processes")

    def pid(self, rank):
        pid = self.pids().get(rank)
        expect(pid is not None, f"there is no process {rank}:\n{self.text()}")
        return pid

    def harm(self, rank, with_signal):
        os.kill(self.pid(rank), with_signal)

    def text(self):
        self.err.seek(0)
        return self.err.read()

    def end(self, within=LONGEST_END):
        """Its exit status and what it said, once all of its processes have ended."""
        begin = time.monotonic()
        try:
            status = self.child.wait(timeout=within)
            while self.pids():
                expect(time.monotonic() < begin + within, "processes outlive mpirun")
                time.sleep(0.05)
        except subprocess.TimeoutExpired:
            raise Failure(f"not ended after {within} s:\n{self.text()}") from None
        finally:
            self.kill()
        self.seconds = time.monotonic() - begin
        return status, self.text()

    def kill(self):
        for pid in [*self.pids().values(), self.child.pid]:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        self.child.wait()


def read_metrics(run):
    lines = []
    with contextlib.suppress(FileNotFoundError):
        for line in (run / "metrics.jsonl").read_text().splitlines():
            with contextlib.suppress(json.JSONDecodeError):  # one that is being written
                lines.append(json.loads(line))
    return lines


def last_step(run):
    return max((line["step"] for line in read_metrics(run) if "loss" in line), default=-1)


def saved_step(run):
    with contextlib.suppress(FileNotFoundError):
        return json.loads((run / "last/training_state.json").read_text())["step"]
    return -1


def check_message(text, pattern):
    """One line of heed says it."""
    said = [line for line in text.splitlines() if line.startswith("heed: ")]
    expect(len(said) == 1 and re.search(pattern, said[0]), f"expected one '{pattern}':\n{text}")


class Bench:
    """Where cases run, and a run that nothing happens to."""

    def __init__(self, heed, folder, arguments):
        self.heed, self.folder, self.arguments = heed, folder, arguments
        self.random = random.Random(arguments.seed)
        (folder / "text.txt").write_text(words())
        self.wholes = {}

    def options(self, steps, more):
        settings = SETTINGS | {"steps": steps} | (more or {})
        return ["--data", str(self.folder / "text.txt"), "--config", "shakespeare-char-cpu",
                *[word for name, value in settings.items() for word in ("--set", f"{name}={value}")]]

    def start(self, run, processes, steps, before=":", limit=None, more=None, grace=1):
        run = self.folder / run
        resume = ["--resume"] if (run / "run.json").exists() else []
        return Job(self, run, processes, [*self.options(steps, more), *resume],
                   limit or self.arguments.limit, before, grace)

    def finish(self, run, processes, steps, more=None):
        status, text = self.start(run, processes, steps, more=more).end(within=600)
        expect(status == 0, f"{run} was not resumed by {processes}:\n{text}")
        self.compare(self.folder / run, steps, more)

    def compare(self, run, steps, more=None):
        """With the run of one process that nothing happened to."""
        key = f"{steps} {more}"
        if key not in self.wholes:
            whole = self.folder / f"whole{len(self.wholes)}"
            status, text = self.start(whole.name, 1, steps, more=more).end(within=600)
            expect(status == 0, text)
            self.wholes[key] = read_metrics(whole)
        lines = read_metrics(run)
        for name in ("loss", "val_loss"):
            expected = [(line["step"], line[name]) for line in self.wholes[key] if name in line]
            found = [(line["step"], line[name]) for line in lines if name in line]
            expect(len(expected) == len(found), f"{run}: {len(found)} of {len(expected)} {name}")
            for (step, value), (at, other) in zip(expected, found):
                expect(step == at and abs(value - other) <= 1e-5 * abs(value),
                       f"{run}: {name} {other} at step {at}, {value} in one process")


def kills(bench):
    """SIGKILL of any process at any moment, again and again."""
    steps = 100 + 100 * bench.arguments.kills
    slowest, by_heed = 0, 0
    for number in range(bench.arguments.kills):
        processes = bench.random.choice([2, 3, 4])
        rank = bench.random.randrange(processes)
        job = bench.start("kills", processes, steps)
        before = last_step(job.run)
        if bench.random.random() < 0.8:
            job.wait_for_step(before + bench.random.randint(1, 20))
            time.sleep(bench.random.random() * 0.05)
        else:  # while it starts
            job.wait_for_processes()
            time.sleep(bench.random.random() * 0.5)
        expect(rank in job.pids(), f"kill {number}: there is no process {rank}:\n{job.text()}")
        job.harm(rank, signal.SIGKILL)
        status, text = job.end()
        slowest = max(slowest, job.seconds)
        expect(status != 0, f"kill {number} of process {rank} of {processes}: ended well:\n{text}")
        own = [line for line in text.splitlines() if line.startswith("heed: ")]
        if own:
            by_heed += 1
            check_message(text, rf"process {rank} of {processes} \(.*\) ended without a word")
        else:  # before processes knew each other
            expect(re.search(rf"rank {rank} .*signal 9", text, re.S), f"kill {number}:\n{text}")
    bench.finish("kills", 1 + bench.arguments.kills % 3, steps)
    return f"{bench.arguments.kills} kills, {by_heed} named by heed, ended in at most {slowest:.1f} s"


def stopped(bench):
    """SIGSTOP: a process that hangs."""
    times = []
    for rank, processes in ((0, 3), (2, 3)):
        run = f"stopped{rank}"
        job = bench.start(run, processes, 600)
        job.wait_for_step(7)
        job.harm(rank, signal.SIGSTOP)
        status, text = job.end()
        times.append(f"{job.seconds:.1f} s")
        expect(status != 0, text)
        check_message(text, rf"process {rank} of {processes} \(.*\) has given no sign of life for")
        bench.finish(run, 2, 600)
    return "ended after " + ", ".join(times)


def frozen(bench):
    """All processes stopped for longer than the limit, as by a batch system: nobody is blamed."""
    job = bench.start("frozen", 2, 600, limit=1)
    job.wait_for_step(7)
    pids = list(job.pids().values())
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(3)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    status, text = job.end(within=300)
    expect(status == 0, text)
    bench.compare(job.run, 600)
    return "went on"


def full(bench):
    """A disk that is full for one process only, from some step on: MPI's own files are there before."""
    rare = {"checkpoint_every": ENDLESS}
    first = bench.start("full", 2, 600, more=rare)
    first.wait_for_step(7)
    first.harm(0, signal.SIGTERM)
    first.end()
    saved = saved_step(first.run)
    job = bench.start("full", 3, 600, more=rare)
    job.wait_for_step(saved + 1)
    resource.prlimit(job.pid(1), resource.RLIMIT_FSIZE, (4096, 4096))
    job.harm(0, signal.SIGTERM)  # saves
    status, text = job.end()
    expect(status != 0, text)
    check_message(text, r"process 1 of 3: cannot write '.*-2-of-3.safetensors': File too large")
    expect(saved_step(job.run) == saved, "another checkpoint than before")
    left = [path.name for path in (job.run / "last/training_state").iterdir()]
    expect(len(left) == 2, f"left behind: {left}")
    bench.finish("full", 3, 600, more=rare)
    return "said so"


def full_disk(bench):
    """A file system that metrics have filled before the run ends, so that a checkpoint has no room;
    root alone can mount one."""
    if os.geteuid() != 0:
        return "skipped: only root mounts a file system"
    run = bench.folder / "full_disk"
    run.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=900k", "tmpfs", str(run)],
                             stderr=subprocess.DEVNULL, check=False)
    if mounted.returncode != 0:
        return "skipped: no file system can be mounted here"
    try:
        status, text = bench.start("full_disk", 2, 600).end()
        expect(status != 0, text)
        check_message(text, "No space left on device")
        expect(0 < saved_step(run) < 600, f"saved at step {saved_step(run)}")
        subprocess.run(["mount", "-o", "remount,size=4m", str(run)], check=True)
        bench.finish("full_disk", 3, 600)
    finally:
        subprocess.run(["umount", str(run)], check=True)
    return "said so"


def damaged(bench):
    """A checkpoint of which one process reads a damaged part: of another byte, and cut."""
    job = bench.start("damaged", 3, 600, more={"checkpoint_every": ENDLESS})
    job.wait_for_step(7)
    job.harm(0, signal.SIGTERM)
    job.end()
    saved = saved_step(job.run)
    shard = next((job.run / "last/training_state").glob("*-2-of-3.safetensors"))
    right = shard.read_bytes()
    for wrong in (right[:-1] + bytes([right[-1] ^ 1]), right[:-4]):
        for processes in (3, 2):
            shard.write_bytes(wrong)
            status, text = bench.start("damaged", processes, 600,
                                       more={"checkpoint_every": ENDLESS}).end()
            expect(status == 1, text)
            check_message(text, re.escape(str(shard)))
            expect(shard.read_bytes() == wrong and saved_step(job.run) == saved, "changed")
    shard.write_bytes(right)
    bench.finish("damaged", 2, 600, more={"checkpoint_every": ENDLESS})
    return "refused four times"


def diverged(bench):
    """A number that is none, in the memory of one process."""
    constant = {"learning_rate": 1e-30, "min_learning_rate": 0, "channels": 64}  # so that parameters are known
    # Large blocks are mapped alone, so that nothing but parameters stands where they stood.
    job = bench.start("diverged", 3, 500, before="export MALLOC_MMAP_THRESHOLD_=32768",
                      more=constant)
    job.wait_for_step(7)
    try:
        poison(job, 1, first_numbers(job.run / "last/model.safetensors", "wte.weight", 512))
    except PermissionError:
        job.kill()
        return "skipped: no process may write into another here"
    status, text = job.end()
    expect(status != 0, text)
    check_message(text, r"became (-?nan|inf).*is intact.*\(first in process 1\)")
    bench.finish("diverged", 2, 500, more=constant)
    return "said so"


def first_numbers(file, name, size):
    """The first bytes of a tensor of a safetensors file."""
    contents = file.read_bytes()
    length = struct.unpack("<Q", contents[:8])[0]
    header = json.loads(contents[8:8 + length])
    [entry] = [entry for key, entry in header.items() if key.endswith(name)]
    begin = 8 + length + entry["data_offsets"][0]
    return contents[begin:begin + size]


def places_of(numbers, pid, memory):
    """Where these numbers stand in the memory of a process, but for its heap, stack and files."""
    places = []
    for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
        begin, end = (int(part, 16) for part in line.split()[0].split("-"))
        if not line.split()[1].startswith("rw") or len(line.split()) > 5:  # named: heap, stack, files
            continue
        with contextlib.suppress(OSError):
            memory.seek(begin)
            found = memory.read(end - begin).find(numbers)
            if found >= 0:
                places.append(begin + found)
    return places


def poison(job, rank, numbers):
    """Overwrites these numbers of a process, wherever they are, until it ends. The heap is left alone:
    what it has freed holds its own bookkeeping."""
    pid = job.pids()[rank]
    nothing = struct.pack("<f", float("nan")) * (len(numbers) // 4)
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        places = []
        # What is mapped may change while it is read.
        for _ in range(20):
            if places or job.child.poll() is not None:
                break
            places = places_of(numbers, pid, memory)
        expect(places, f"process {rank} has no such numbers:\n{job.text()}")
        while job.child.poll() is None:
            for place in places:
                with contextlib.suppress(OSError):
                    memory.seek(place)
                    if memory.read(len(numbers)) == numbers:
                        memory.seek(place)
                        memory.write(nothing)
            time.sleep(0.001)


def signalled(bench):
    """A signal to one process stops all, after a step and a checkpoint."""
    job = bench.start("signalled", 3, ENDLESS)
    job.wait_for_step(7)
    job.harm(2, signal.SIGTERM)
    status, text = job.end()
    expect(status == 130, f"status {status}:\n{text}")
    check_message(text, r"process 2 of 3 was asked to stop.*everything is saved")
    expect(saved_step(job.run) == last_step(job.run), "not saved")
    return "saved"


def interrupted(bench):
    """Ctrl-C, as the terminal sends it: to mpirun, which sends SIGTERM to its processes `grace` seconds
    later, and SIGKILL some seconds after that. Open MPI 5 leaves them a quarter of a second, whatever is set,
    and no longer shows what they say."""
    rare = {"checkpoint_every": ENDLESS}
    job = bench.start("interrupted", 3, ENDLESS, more=rare, grace=5)
    job.wait_for_step(7)
    os.killpg(job.child.pid, signal.SIGINT)
    status, text = job.end()
    expect(status != 0, text)
    said = text.count("stopping: saving")
    expect(said == (0 if open_mpi_version() >= 5 else 1), f"said {said} times that it saves:\n{text}")
    expect(saved_step(job.run) == last_step(job.run), f"not saved:\n{text}")
    return "saved once"


def absent(bench):
    """A process that never begins, so that the others wait for it in MPI."""
    job = bench.start("absent", 2, 60, before='if [ "$rank" = 1 ]; then sleep 1000; fi')
    status, text = job.end()
    expect(status != 0, text)
    check_message(text, r"process 0 of 2 waited .* for the others to start")
    return "ended"


CASES = {case.__name__: case for case in (
    kills, stopped, frozen, full, full_disk, damaged, diverged, signalled, interrupted, absent)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("heed", type=pathlib.Path)
    parser.add_argument("cases", nargs="*", default=[])
    parser.add_argument("--kills", type=int, default=int(os.environ.get("HEED_KILLS", "3")))
    parser.add_argument("--limit", type=float, default=3)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if shutil.which("mpirun") is None:
        sys.exit(77)
    failed = False
    with tempfile.TemporaryDirectory(prefix="heed-faults-") as folder:
        bench = Bench(arguments.heed.resolve(), pathlib.Path(folder), arguments)
        for name, case in CASES.items():
            if arguments.cases and name not in arguments.cases:
                continue
            begin = time.monotonic()
            try:
                print(f"{name}: {case(bench)}", end="")
            except Failure as failure:
                failed = True
                print(f"{name}: FAILED: {failure}", end="")
            print(f" ({time.monotonic() - begin:.0f} s)", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

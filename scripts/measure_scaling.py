#!/usr/bin/env python3
"""Compares `heed plan` with training over slow links, all on this machine.

Every process trains in a network namespace of its own, pinned to a core. Namespaces are joined by veth
pairs and a bridge, whose bandwidth `tc tbf` limits; a delay is added by a relay between two TUN
devices (this program), as not every kernel has netem. What `heed plan` is told is measured before and
after each run, and the better taken: the link's bandwidth and latency, and what moving bytes takes of a core,
by a small MPI program (measure_exchange.c), and the rates of a core by `heed plan` itself, in as many
processes at once as there are cores. Nothing is fitted.

    sudo scripts/measure_scaling.py                      all combinations
    sudo scripts/measure_scaling.py --only 3,5 --out rows.json
    sudo scripts/measure_scaling.py --list

Needs root, Open MPI, iproute2 and python3, and a build (build/release). Traffic stays between the
namespaces, which are removed at the end.
"""

import argparse
import ctypes
import fcntl
import json
import os
import select
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SELF = str(Path(__file__).resolve())
PREFIX = "heed-node"
SWITCH = "heed-switch"
CORES = sorted(os.sched_getaffinity(0))
# Open MPI's protocols for TCP: send (1), in place (8). With its default, put, a request for data waits behind
# the data that goes the other way, so that links carry one direction at a time.
SEND = "9"

# Small texts need a small vocabulary: gpt2's blocks with byte pairs learned from the text.
CHAR_CPU = ["shakespeare-char-cpu", {"batch_size": 12}]
CHAR_CPU_LARGE = ["shakespeare-char-cpu", {"batch_size": 64}]
MIDDLE = ["shakespeare-char-cpu", {"batch_size": 12, "layers": 6, "channels": 256, "heads": 8}]
CHAR = ["shakespeare-char", {"batch_size": 8}]
GPT2 = ["gpt2", {"batch_size": 8, "accumulation": 1, "context": 128, "vocabulary_size": 512}]


def also(run, **settings):
    return [run[0], {**run[1], **settings}]


# (config and settings, processes, Mbit a second, milliseconds of delay, steps)
COMBINATIONS = [
    (CHAR_CPU, 2, 50, 0, 30),
    (CHAR_CPU, 2, 500, 0, 100),
    (CHAR_CPU_LARGE, 2, 200, 0, 40),
    (CHAR_CPU_LARGE, 4, 200, 0, 30),
    (MIDDLE, 2, 200, 0, 10),
    (MIDDLE, 2, 1000, 0, 20),
    (MIDDLE, 3, 500, 0, 10),
    (CHAR, 2, 1000, 0, 8),
    (CHAR, 2, 200, 0, 6),
    (CHAR_CPU, 2, 500, 1, 40),
    (CHAR_CPU_LARGE, 2, 200, 5, 30),
    (also(MIDDLE, shard=2), 2, 500, 0, 15),
    (also(MIDDLE, shard=3), 2, 500, 0, 15),
    (also(CHAR, wire="bf16"), 2, 500, 0, 8),
    (also(CHAR, precision="f32"), 2, 500, 0, 8),
    (GPT2, 2, 1000, 0, 6),
    (also(GPT2, shard=3), 2, 1000, 0, 6),
]


def call(*words, **options):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def quietly(*words):
    subprocess.run(words, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def node(index):
    return f"{PREFIX}{index}"


def address(index):
    return f"10.77.0.{index + 1}"


def in_node(index, *words):
    """The command that runs `words` in a namespace, under the node's own host name."""
    return ["ip", "netns", "exec", node(index), "unshare", "--uts", "sh", "-c",
            f'hostname {node(index)}; exec "$@"', "sh", *words]


# --- Networks.

def limit(name, device, megabits):
    # What TCP hands to a device at once has up to 64 KiB, and is cut up where the burst is smaller.
    burst = max(128 * 1024, int(megabits * 1e6 / 8 / 1000))
    call("ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate",
         f"{megabits}mbit", "burst", str(burst), "latency", "100ms")


def remove_network():
    for name in [SWITCH] + [node(i) for i in range(16)]:
        if Path("/run/netns", name).exists():
            quietly("ip", "netns", "del", name)


def make_nodes(count):
    remove_network()
    for index in range(count):
        call("ip", "netns", "add", node(index))
        call("ip", "-n", node(index), "link", "set", "lo", "up")


def make_switched(count, megabits):
    make_nodes(count)
    call("ip", "netns", "add", SWITCH)
    call("ip", "-n", SWITCH, "link", "add", "switch", "type", "bridge")
    call("ip", "-n", SWITCH, "link", "set", "switch", "up")
    for index in range(count):
        port = f"port{index}"
        call("ip", "-n", SWITCH, "link", "add", port, "type", "veth", "peer", "name", "link0",
             "netns", node(index))
        call("ip", "-n", SWITCH, "link", "set", port, "master", "switch", "up")
        call("ip", "-n", node(index), "addr", "add", f"{address(index)}/24", "dev", "link0")
        call("ip", "-n", node(index), "link", "set", "link0", "up")
        limit(node(index), "link0", megabits)
        limit(SWITCH, port, megabits)


class Relay:
    """Two nodes joined by TUN devices; every packet is passed on after a delay."""

    def __init__(self, megabits, milliseconds):
        make_nodes(2)
        self.delay = milliseconds / 1000
        self.devices = [self.open(index) for index in range(2)]
        for index in range(2):
            limit(node(index), "link0", megabits)
        self.running = True
        self.threads = [threading.Thread(target=self.run, args=(a, 1 - a)) for a in range(2)]
        for thread in self.threads:
            thread.start()

    @staticmethod
    def open(index):
        here = os.open("/proc/self/ns/net", os.O_RDONLY)
        there = os.open(f"/run/netns/{node(index)}", os.O_RDONLY)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(there, 0) != 0:
            raise OSError(ctypes.get_errno(), "setns")
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
        fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", b"link0", IFF_TUN | IFF_NO_PI))
        libc.setns(here, 0)
        os.close(here)
        os.close(there)
        call("ip", "-n", node(index), "link", "set", "link0", "mtu", "9000", "up")
        call("ip", "-n", node(index), "addr", "add", address(index), "peer", address(1 - index), "dev",
             "link0")
        return device

    def run(self, source, sink):
        waiting = []  # (when, packet), in order
        first = 0
        while self.running:
            now = time.monotonic()
            while first < len(waiting) and waiting[first][0] <= now:
                try:
                    os.write(self.devices[sink], waiting[first][1])
                except BlockingIOError:
                    break
                first += 1
            if first > 1000:
                del waiting[:first]
                first = 0
            timeout = 0.05 if first == len(waiting) else max(waiting[first][0] - now, 0)
            if select.select([self.devices[source]], [], [], timeout)[0]:
                try:
                    for _ in range(64):
                        waiting.append((time.monotonic() + self.delay,
                                        os.read(self.devices[source], 65536)))
                except BlockingIOError:
                    pass

    def stop(self):
        self.running = False
        for thread in self.threads:
            thread.join()
        for device in self.devices:
            os.close(device)


# --- Plans and runs.

def set_options(settings):
    return [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]


def plan(heed, config, settings, processes, link):
    """Of as many processes at once as compute at once; the slowest one's."""
    cores = min(len(CORES) / processes, 1)
    words = [heed, "plan", config, *set_options(settings), "--nodes", str(processes), "--cores",
             str(cores), "--bandwidth", str(link["bandwidth"]), "--latency", str(link["latency"]),
             *(["--copies", str(link["copies"])] if link["copies"] else []), "--json"]
    running = [subprocess.Popen(["taskset", "-c", str(CORES[i]), *words], stdout=subprocess.PIPE,
                                text=True, env={**os.environ, "HEED_THREADS": "1"})
               for i in range(min(processes, len(CORES)))]
    plans = [json.loads(each.communicate()[0]) for each in running]
    return max(plans, key=lambda each: each["step_seconds"]["total"])


def better_link(one, other):
    return {"latency": min(one["latency"], other["latency"]),
            "bandwidth": max(one["bandwidth"], other["bandwidth"]),
            "copies": max(one["copies"], other["copies"])}


def step_times(metrics, process):
    """The time between the lines that the run writes after each step."""
    times, seen = [], 0
    while process.poll() is None:
        try:
            lines = metrics.read_bytes().count(b'"loss"') if metrics.exists() else 0
        except OSError:
            lines = 0
        if lines > seen:
            times.append(time.monotonic())
            seen = lines
        time.sleep(0.002)
    return [b - a for a, b in zip(times, times[1:])]


def started(work, processes, words):
    """The command that starts `words` in every node, each on a core."""
    pinned = work / "pinned.sh"
    cores = " ".join(map(str, CORES))
    pinned.write_text("#!/bin/sh\nrank=$OMPI_COMM_WORLD_RANK\n"
                      f"set -- $(($rank % {len(CORES)} + 1)) \"$@\"\n"
                      f"core=$(echo {cores} | cut -d' ' -f$1)\nshift\n"
                      'exec taskset -c "$core" "$@"\n')
    pinned.chmod(0o755)
    hosts = ",".join(f"{address(i)}:1" for i in range(processes))
    return in_node(0, "mpirun", "--allow-run-as-root", "-n", str(processes), "--host", hosts,
                   "--bind-to", "none", "--mca", "plm_rsh_agent", f"{SELF} --agent", "--mca", "btl",
                   "tcp,self", "--mca", "btl_tcp_flags", SEND, "--mca", "btl_tcp_if_include", "link0", "--mca", "oob_tcp_if_include",
                   "link0", "-x", "HEED_THREADS=1", str(pinned), *words)


def measure_link(work, processes):
    program = work / "measure_exchange"
    if not program.exists():
        call("mpicc", "-O2", "-o", str(program), str(ROOT / "scripts/measure_exchange.c"))
    return json.loads(call(*started(work, processes, [str(program)])))


def run(heed, work, text, config, settings, processes, steps):
    never = {"steps": steps, "evaluate_every": 0, "checkpoint_every": 0, "sample_every": 0,
             "evaluation_batches": 1, "validation_fraction": 0.002, "warmup_steps": 1}
    words = [heed, "train", "--data", str(text), "--config", config, "--out", str(work / "run"),
             *set_options({**settings, **never})]
    log = open(work / "log", "w+")
    process = subprocess.Popen(started(work, processes, words), stdout=log, stderr=log)
    times = step_times(work / "run" / "metrics.jsonl", process)
    if process.returncode != 0:
        log.seek(0)
        sys.exit(f"the run failed:\n{log.read()}")
    lines = [json.loads(line) for line in (work / "run" / "metrics.jsonl").open()]
    communication = [line["communication"] for line in lines if "communication" in line]
    return {"steps": times[1:], "communication": statistics.median(communication[2:] or [0])}


def measure(heed, text, combination):
    (config, settings), processes, megabits, milliseconds, steps = combination
    relay = None
    work = Path(tempfile.mkdtemp(prefix="heed-scaling-"))
    try:
        if milliseconds:
            relay = Relay(megabits, milliseconds)
        else:
            make_switched(processes, megabits)
        link = measure_link(work, processes)
        before = plan(heed, config, settings, processes, link)
        precision = before["run"]["precision"]
        measured = run(heed, work, text, config, {**settings, "precision": precision}, processes,
                       steps)
        # Ceilings are the best that were measured: a machine is never faster than it is.
        link = better_link(link, measure_link(work, processes))
        after = plan(heed, config, settings, processes, link)
        planned = min(before, after, key=lambda each: each["step_seconds"]["total"])
    finally:
        if relay:
            relay.stop()
        remove_network()
        shutil.rmtree(work)
    seconds, predicted = statistics.median(measured["steps"]), planned["step_seconds"]["total"]
    return {"config": config, "settings": settings, "processes": processes, "megabits": megabits,
            "delay_ms": milliseconds, "link": link, "precision": planned["run"]["precision"],
            "predicted": predicted, "measured": seconds, "error": predicted / seconds - 1,
            "predicted_exposed": planned["step_seconds"]["exposed"] / predicted,
            "measured_communication": measured["communication"],
            "range": [min(measured["steps"]), max(measured["steps"])],
            "rates": planned["rates"], "step_seconds": planned["step_seconds"]}


def table_row(row):
    settings = " ".join(f"{name}={value}" for name, value in row["settings"].items())
    return (f"| `{row['config']}` {settings}, {row['precision']} | {row['processes']} | "
            f"{row['link']['bandwidth'] * 8 / 1e6:.0f} | {row['link']['latency'] * 1e3:.2f} | "
            f"{row['predicted'] * 1e3:.0f} | {row['measured'] * 1e3:.0f} | {100 * row['error']:+.0f} % | "
            f"{100 * row['predicted_exposed']:.0f} % | {100 * row['measured_communication']:.0f} % |")


def main():
    if sys.argv[1:2] == ["--agent"]:  # what mpirun starts a node's daemon with
        index = int(sys.argv[2].rsplit(".", 1)[1]) - 1
        words = in_node(index, "sh", "-c", " ".join(sys.argv[3:]))
        os.execvp(words[0], words)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--heed", default=str(ROOT / "build/release/bin/heed"))
    parser.add_argument("--text", help="train on FILE [stories of the microworld]")
    parser.add_argument("--only", help="numbers of combinations: 1,2")
    parser.add_argument("--out", help="append rows to FILE, a JSON document a line")
    parser.add_argument("--list", action="store_true", help="list the combinations")
    arguments = parser.parse_args()
    chosen = [int(each) for each in arguments.only.split(",")] if arguments.only else range(
        1, len(COMBINATIONS) + 1)
    if arguments.list:
        for number, combination in enumerate(COMBINATIONS, 1):
            print(number, *combination)
        return
    if os.geteuid() != 0:
        sys.exit("this makes network namespaces: run it as root")
    with tempfile.TemporaryDirectory(prefix="heed-scaling-") as directory:
        text = arguments.text or str(Path(directory, "stories.txt"))
        if not arguments.text:
            Path(text).write_text(call(arguments.heed, "microworld", "--stories", "2000", "--seed", "1"))
        print("| run | processes | Mbit/s | latency, ms | predicted, ms | measured, ms | error | "
              "exchanging, predicted | measured |\n" + "| --- |" + " --- |" * 8, flush=True)
        for number in chosen:
            row = measure(arguments.heed, text, COMBINATIONS[number - 1])
            print(table_row(row), flush=True)
            if arguments.out:
                with open(arguments.out, "a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()

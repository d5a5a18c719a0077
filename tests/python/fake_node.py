#!/usr/bin/python3
"""Poses as the programs that the launcher starts (nodes, dogwood-ctl, floors), with figures that are known beforehand.

Which one is the name that it is called by. DW_FAKE holds JSON with what is to happen:
  latency_us    protocol -> latency of every distributed transaction; else it follows from the log delay
  committed     distributed transactions that each node commits; default 1000
  aborted       attempts; default 10
  local         local transactions, of 500 us each; default 0
  die           node that kills itself once it measures, e.g. "compute-1"
  port_taken    how often compute-0 finds its port taken before it starts (counted in DW_FAKE_STATE)
  refuse        compute-0 ends with code 2 and this line
  hang          compute nodes never get done
  alarm         alarms that compute-0 reports
  open          what each node reports of an open loop, e.g. {"offered": 100, "carried": 0, "waiting": 3, "waiting_us": 900}
  undrained     transactions that compute-0 gave up waiting for
DW_FAKE_STATE is a folder: what was started is noted in its file "started"."""

import json
import os
import signal
import socket
import sys
import time

SPEC = json.loads(os.environ.get("DW_FAKE", "{}"))
STATE = os.environ.get("DW_FAKE_STATE")
EXECUTION_US, VOTE_US, DECISION_US = 600, 400, 300


def flags_of(argv):
    flags = {}
    for name, value in zip(argv, argv[1:]):
        if name.startswith("--"):
            flags.setdefault(name[2:], []).append(value)
    return {name: values[-1] for name, values in flags.items()}


def note(text):
    if STATE:
        with open(os.path.join(STATE, "started"), "a", encoding="utf-8") as file:
            file.write(text + "\n")


def count_up(name):
    path = os.path.join(STATE, name)
    with open(path, "ab") as file:
        file.write(b".")
    return os.path.getsize(path)


def split(address):
    host, _, port = address.rpartition(":")
    return host, int(port)


def ask(address, words):
    with socket.create_connection(split(address), timeout=5) as link:
        link.sendall((json.dumps(words) + "\n").encode())
        return json.loads(link.makefile().readline())


def bucket_low_us(us):
    """The lower edge of the bucket of a latency: 64 buckets to a power of two of nanoseconds."""
    ns = us * 1000
    shift = ns.bit_length() - 1 - 6
    return (ns >> shift << shift) / 1000


class Node:
    """A server on one connection after the other."""

    def __init__(self, role, flags):
        self.role = role
        self.flags = flags
        self.number = int(flags["id"])
        self.name = f"{role}-{self.number}"

    def serve(self):
        signal.signal(signal.SIGTERM, lambda number, frame: os._exit(0))
        if self.number == 0 and self.role == "compute":
            self.fail_to_start()
        server = socket.socket()
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(split(self.flags["listen"]))
        server.listen(64)
        print("listening", ":".join(map(str, server.getsockname())), flush=True)
        while True:
            link, _ = server.accept()
            with link:
                words = json.loads(link.makefile().readline())
                link.sendall((json.dumps(self.answer(*words)) + "\n").encode())

    def fail_to_start(self):
        if SPEC.get("refuse"):
            print(f"dogwood-compute: {SPEC['refuse']}", file=sys.stderr)
            sys.exit(2)
        if SPEC.get("port_taken") and count_up("attempts") <= SPEC["port_taken"]:
            print(f"dogwood-compute: {self.flags['listen']}: the port is in use; choose another", file=sys.stderr)
            sys.exit(3)

    def answer(self, run_id, command, *words):
        if run_id != self.flags["run-id"]:
            return {"error": f"{self.name} belongs to run {self.flags['run-id']}, not {run_id}"}
        if command == "identify":
            return {"role": self.role, "node": self.number, "run_id": run_id, "version": "fake", "pid": os.getpid()}
        return getattr(self, command)(*words)


class Storage(Node):
    def stats(self):
        return {"delay_ms": float(self.flags["log-delay"].split(":")[0])}


class Compute(Node):
    def __init__(self, role, flags):
        super().__init__(role, flags)
        with open(flags["cluster"], encoding="ascii") as file:
            lines = [line.split() for line in file if not line.startswith("#")]
        self.peers = len(lines) - 1
        self.storage = next(address for role, _, address in lines if role == "storage")
        self.begun = None
        self.warmup = self.duration = 0.0

    def begin(self, *words):
        flags = flags_of(list(words))
        self.warmup, self.duration = (int(flags[name]) / 1000 for name in ("warmup-ms", "duration-ms"))
        self.begun = time.monotonic()
        return {"state": "warmup"}

    def state(self):
        if self.begun is None:
            return "idle"
        past = time.monotonic() - self.begun
        if past < self.warmup:
            return "warmup"
        if past < self.warmup + self.duration or SPEC.get("hang"):
            if SPEC.get("die") == self.name:
                print(f"{self.name}: about to die", file=sys.stderr, flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
            return "measuring"
        return "done"

    def status(self):
        return {"node": self.number, "state": self.state(), "incarnation": 1, "protocol": self.flags["protocol"],
                "committed": 0 if self.begun is None else SPEC.get("committed", 1000), "aborted": SPEC.get("aborted", 10),
                "unknown": 0, "in_doubt": 0, "blocked": 0, "p50_us": 7000.0, "p99_us": 7100.0, "peers_up": self.peers,
                "peers": self.peers, "alarms": 0}

    def latency(self):
        """(execution, prepare, commit) in microseconds."""
        fixed = SPEC.get("latency_us", {}).get(self.flags["protocol"])
        if fixed is not None:
            return EXECUTION_US, fixed - EXECUTION_US, 0
        delay_us = round(ask(self.storage, [self.flags["run-id"], "stats"])["delay_ms"] * 1000)
        return EXECUTION_US, VOTE_US + delay_us, DECISION_US + delay_us if self.flags["protocol"] == "2pc" else 0

    def report(self):
        execution, prepare, commit = self.latency()
        total = execution + prepare + commit
        committed, local = SPEC.get("committed", 1000), SPEC.get("local", 0)
        two_phase = self.flags["protocol"] == "2pc"
        dist = {"committed": committed, "total_us": committed * total, "execution_us": committed * execution,
                "prepare_us": committed * prepare, "commit_us": committed * commit, "abort_us": 0,
                "release_us": committed * (total + 200), "release_count": committed, "occupancy_us": committed * total,
                "wait_us": committed * 50, "writers": committed + 4, "readers": 0, "costed": committed + 4, "log_writes": 4 * (committed + 4), "forced_log_writes":
                (3 if two_phase else 2) * (committed + 4), "messages": 3 * (committed + 4), "acks": 0,
                "log_bytes": 900 * (committed + 4), "hist": [[bucket_low_us(total), committed]] if committed else [],
                "max_us": total if committed else 0, "clamped_low": 0, "clamped_high": 0}
        return {"node": self.number, "window_us": round(self.duration * 1e6), "cpu_us": 100 * (committed + local),
                "committed": committed + local, "aborted": SPEC.get("aborted", 10), "unknown": 0, "unfinished": 4,
                "undrained": SPEC.get("undrained", 0) if self.number == 0 else 0, **SPEC.get("open", {}), "dist": dist,
                "local": {"committed": local, "total_us": 500 * local,
                          "hist": [[bucket_low_us(500), local]] if local else [], "max_us": 500 if local else 0},
                "alarms": {"CONFLICT": SPEC.get("alarm", 0) if self.number == 0 else 0}, "retries": 0}


def control(argv):
    flags = flags_of(argv)
    words = argv[argv.index("--json") + 1:]
    try:
        answer = ask(flags["at"], [flags["run-id"], *words])
    except (OSError, ValueError):
        answer = {"error": f"{flags['at']} does not answer"}
    if "error" in answer:
        print(f"dogwood-ctl: {answer['error']}", file=sys.stderr)
        return 3
    print(json.dumps(answer))
    return 0


def bench_stream():
    print("listening 127.0.0.1:1", flush=True)
    signal.pause()
    return 0


def main(argv):
    name = os.path.basename(argv[0])
    flags = flags_of(argv[1:])
    if name == "dogwood-ctl":
        return control(argv[1:])
    if name == "dogwood-bench-stream":
        return bench_stream()
    if name == "dogwood-bench-log":
        print(json.dumps({"depth": 1, "per_s": 10000, "p50_us": 100.0, "p99_us": 150.0}))
        return 0
    if name == "dogwood-bench-writer":
        mean_us = 200.0 if flags["sync"] == "on" else 10.0
        print(json.dumps({"mode": "service", "batch": 1, "records_per_s": 1e6 / mean_us, "p50_us": mean_us, "p99_us": 300.0}))
        return 0
    note(" ".join([name, *argv[1:]]))
    kind, role = {"dogwood-compute": (Compute, "compute"), "dogwood-storage": (Storage, "storage")}[name]
    kind(role, flags).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))

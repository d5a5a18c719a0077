"""The nodes of one point: how they are called, started, waited for, and stopped. All on loopback."""

import contextlib
import os
import re
import select
import socket
import time

from dogwood_lib.control import CallFailed, Control
from dogwood_lib.errors import ASKED_WRONGLY, ENVIRONMENT, AskedWrongly, EnvironmentFailure
from dogwood_lib.experiment_keys import number_text
from dogwood_lib.processes import STOP_SECONDS, Fleet, Node
from dogwood_lib.programs import find_program

HOST = "127.0.0.1"
PROGRAMS = ("dogwood-compute", "dogwood-storage", "dogwood-ctl")
PORT_ATTEMPTS = 3
PEERS_SECONDS = 30
PEERS_PAUSE = 0.05
# A node loads its rows before it listens: a million of 1 KB take a few seconds.
LOAD_SECONDS_PER_GB = 60
START_SECONDS = 60

# Names a port that somebody else took between our look and the node's.
PORT_TAKEN = re.compile(r"\bport\b|in use|\bbind\b|\blisten\b", re.I)


class PortTaken(EnvironmentFailure):
    """Another program was faster; other ports may be free."""


def find_programs(build):
    return {name: find_program(name, build) for name in PROGRAMS}


def free_addresses(count):
    """Loopback addresses that are free now. All are held until the last is found, so they differ."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((HOST, 0))
        return [f"{HOST}:{one.getsockname()[1]}" for one in sockets]


def on_off(flag):
    return "on" if flag else "off"


def delay_spec(point):
    """The log delay as dogwood-storage takes it: MS[:DIST[:PARAM]]."""
    spec = f"{number_text(point['log_delay_ms'])}:{point['log_delay_dist']}"
    return spec if point["log_delay_param"] is None else f"{spec}:{number_text(point['log_delay_param'])}"


def storage_command(programs, point, run_id, node, address, data):
    return [programs["dogwood-storage"], "--id", str(node), "--listen", address, "--data", data, "--run-id", run_id,
            "--log-delay", delay_spec(point), "--sync", on_off(point["sync"]), "--store", "rocksdb"]


def compute_command(programs, point, run_id, node, address, cluster_file):
    command = [programs["dogwood-compute"], "--id", str(node), "--listen", address, "--cluster", cluster_file,
               "--run-id", run_id, "--protocol", point["protocol"], "--threads", str(point["threads"]), "--seed",
               str(point["seed"]), "--loop", point["loop"]]
    if point["rate_tps"] is not None:
        command += ["--rate", number_text(point["rate_tps"] / point["compute_nodes"])]
    for key in ("vote_timeout_ms", "decision_timeout_ms", "vote_request_timeout_ms", "request_timeout_ms",
                "retry_backoff_us"):
        command += ["--" + key.replace("_", "-"), str(point[key])]
    command += ["--batch-accesses", on_off(point["batch_accesses"]), "--workload", point["workload"]]
    prefix = point["workload"] + "."
    for key, value in point.items():
        if key.startswith(prefix):
            command += ["--set", f"{key[len(prefix):]}={number_text(value)}"]
    return command


def write_cluster_file(path, compute, storage):
    with open(path, "w", encoding="ascii") as file:
        file.write("# role id address\n")
        for role, addresses in (("compute", compute), ("storage", storage)):
            file.writelines(f"{role} {node} {address}\n" for node, address in enumerate(addresses))


def start_seconds(point):
    return START_SECONDS + LOAD_SECONDS_PER_GB * point["ycsb.records"] * point["ycsb.record_bytes"] / 1e9


class Cluster:
    """A `with` block: all nodes run inside, none after. `data` is an empty folder on the disk under test."""

    def __init__(self, programs, point, run_id, data, log_dir):
        self.programs = programs
        self.point = point
        self.run_id = run_id
        self.data = data
        self.fleet = Fleet(log_dir)
        self.control = Control(programs["dogwood-ctl"], run_id)
        self.compute = []
        self.storage = []

    def __enter__(self):
        try:
            for attempt in range(1, PORT_ATTEMPTS + 1):
                try:
                    self._start(attempt)
                    break
                except PortTaken:
                    self.fleet.stop()
                    if attempt == PORT_ATTEMPTS:
                        raise
            self._wait_peers()
        except BaseException:
            self.fleet.stop()
            raise
        return self

    def __exit__(self, *reason):
        self.stop()

    def stop(self):
        """Compute nodes first, so that they can end what they began."""
        for node in self.compute:
            node.ask_to_stop()
        deadline = time.monotonic() + STOP_SECONDS
        for node in self.compute:
            node.stop(max(0.0, deadline - time.monotonic()))
        self.fleet.stop()

    def _start(self, attempt):
        point = self.point
        addresses = free_addresses(point["compute_nodes"] + point["storage_nodes"])
        compute, storage = addresses[:point["compute_nodes"]], addresses[point["compute_nodes"]:]
        data = os.path.join(self.data, str(attempt))
        os.makedirs(data)
        cluster_file = os.path.join(data, "cluster")
        write_cluster_file(cluster_file, compute, storage)
        self.storage = [self._launch(f"storage-{node}", storage_command(
            self.programs, point, self.run_id, node, address, os.path.join(data, f"storage-{node}")))
            for node, address in enumerate(storage)]
        self._wait_ready(self.storage)
        self.compute = [self._launch(f"compute-{node}", compute_command(
            self.programs, point, self.run_id, node, address, cluster_file)) for node, address in enumerate(compute)]
        self._wait_ready(self.compute)

    def _launch(self, name, command):
        node = Node(name, command, os.path.join(self.fleet.log_dir, f"{name}.log"))
        self.fleet.nodes.append(node)
        return node

    def _wait_ready(self, nodes):
        deadline = time.monotonic() + start_seconds(self.point)
        for node in nodes:
            try:
                node.wait_ready(max(0.0, deadline - time.monotonic()))
            except EnvironmentFailure as failure:
                self._explain_start(node, failure)

    def _explain_start(self, node, failure):
        """A node that ends before it listens has said why in its last line and exit code."""
        code = node.process.poll()
        line = node.last_line()
        if code == ENVIRONMENT and PORT_TAKEN.search(line):
            raise PortTaken(f"{node.name} found no free port in {PORT_ATTEMPTS} attempts: {line}") from failure
        if code == ASKED_WRONGLY:
            raise AskedWrongly(f"{node.name} refuses what it is asked: {line} ({node.log_path})") from failure
        raise failure

    def _wait_peers(self):
        """Until every compute node is connected with every other node."""
        deadline = time.monotonic() + PEERS_SECONDS
        while True:
            states = self.status()
            missing = [state for state in states if state["peers_up"] < state["peers"]]
            if not missing:
                return
            if time.monotonic() > deadline:
                raise EnvironmentFailure(f"compute-{missing[0]['node']} reached {missing[0]['peers_up']} of "
                                         f"{missing[0]['peers']} peers in {PEERS_SECONDS} s; its log is "
                                         f"{self.compute[missing[0]['node']].log_path}")
            self.wait(PEERS_PAUSE)

    def ask(self, nodes, *words):
        """The answers of all these nodes. If a node has died, it is named instead of the call that failed."""
        try:
            return self.control.call_all([node.address for node in nodes], *words)
        except CallFailed:
            self.fleet.check(grace=0.5)
            raise

    def status(self):
        return self.ask(self.compute, "status")

    def begin(self):
        point = self.point
        self.ask(self.compute, "begin", "--warmup-ms", round(point["warmup_s"] * 1000), "--duration-ms",
                 round(point["duration_s"] * 1000))

    def reports(self):
        return self.ask(self.compute, "report")

    def wait(self, seconds):
        """Sleeps, but raises as soon as a node dies."""
        with contextlib.ExitStack() as stack:
            poll = select.poll()
            for node in self.fleet.nodes:
                node.check()
                descriptor = os.pidfd_open(node.process.pid)
                stack.callback(os.close, descriptor)
                poll.register(descriptor, select.POLLIN)
            poll.poll(max(0, round(seconds * 1000)))
        self.fleet.check()

    def storage_cpu_us(self):
        """What the storage nodes have used so far; the kernel counts in ticks of 10 ms."""
        return sum(cpu_us(node.process.pid) for node in self.storage)


def cpu_us(pid):
    """User and system time of a process; 0 if it has gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) * 1_000_000 // os.sysconf("SC_CLK_TCK")

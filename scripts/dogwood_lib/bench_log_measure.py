"""What `bench log` runs: nodes and floors side by side, interleaved so that a drift of the disk meets all alike."""

import os
import shutil
from dataclasses import dataclass, field

from dogwood_lib.errors import EnvironmentFailure
from dogwood_lib.processes import Fleet

RUN_ID = "bench-log"
STREAM_RUN_ID = "bench-stream"
START_SECONDS = 60
PRELOAD_DEPTH = 1024
PRELOAD_SECONDS = 3600
ENTRIES_DEPTH = 64
ENTRIES_WARM_UP = 0.05
ENTRIES_SECONDS = 0.2

PROGRAMS = ("dogwood-storage", "dogwood-ctl", "dogwood-bench-log", "dogwood-bench-stream", "dogwood-bench-writer")


@dataclass(frozen=True)
class Plan:
    """What is asked for. Memory has nothing to sync, so it appears once, with sync "off"."""
    depths: list
    streams: int
    rounds: int
    seconds: float
    bytes: int
    stores: list
    syncs: list
    burst: int
    burst_rounds: int
    delay_ms: float
    entries: list
    entries_rounds: int

    def configurations(self):
        found = [("rocksdb", sync) for sync in self.syncs if "rocksdb" in self.stores]
        return found + ([("memory", "off")] if "memory" in self.stores else [])


@dataclass
class Measured:
    """What came out. A sample has series, store, sync, depth, round, per_s and times in microseconds; series are "node",
    "writer" (one in-process writer, with batches as large as the node's were on average), "exchange" (empty requests on
    the stream) and "fdatasync"."""
    samples: list = field(default_factory=list)
    burst: dict = None
    entries: list = field(default_factory=list)


class Bench:
    """One run of the plan. `programs` are the paths by name, `data` is an empty folder on the disk under test, `log_dir`
    takes the nodes' output."""

    def __init__(self, plan, programs, data, log_dir, progress):
        self.plan = plan
        self.programs = programs
        self.data = data
        self.log_dir = log_dir
        self.progress = progress
        self.measured = Measured()
        self.fresh = 0

    def run(self):
        for number in range(1, self.plan.rounds + 1):
            self._round(number)
        if self.plan.burst:
            self._burst()
        if self.plan.entries:
            self._entries()
        return self.measured

    def _fresh_dir(self):
        """RocksDB reads what it finds; so everything starts in a folder of its own."""
        self.fresh += 1
        path = os.path.join(self.data, str(self.fresh))
        os.makedirs(path)
        return path

    def _start_node(self, fleet, store, sync, name, delay_ms=0):
        command = [self.programs["dogwood-storage"], "--id", "0", "--listen", "127.0.0.1:0", "--run-id", RUN_ID,
                   "--log-delay", f"{delay_ms:g}", "--sync", sync, "--store", store]
        path = self._fresh_dir()
        if store != "memory":
            command += ["--data", path]
        return fleet.start(name, command), path

    def _client(self, node, *flags):
        return [self.programs["dogwood-bench-log"], "--connect", node.address, "--run-id", RUN_ID, "--bytes",
                str(self.plan.bytes), *map(str, flags)]

    def _round(self, number):
        """All depths, and at each depth all series, in an order that turns from round to round. The writer comes right
        after the node, whose batches it imitates."""
        with Fleet(self.log_dir) as fleet:
            echo = fleet.start("exchange", [self.programs["dogwood-bench-stream"], "--listen", "127.0.0.1:0"])
            nodes = {}
            for store, sync in self.plan.configurations():
                nodes[store, sync], _ = self._start_node(fleet, store, sync, f"storage-{store}-{sync}")
            for depth in self.plan.depths:
                steps = [("floors", None), *nodes.items()]
                turn = (number - 1) % len(steps)
                for configuration, node in steps[turn:] + steps[:turn]:
                    self.progress(f"round {number} of {self.plan.rounds}, {depth} in flight: "
                                  f"{describe(*configuration) if node else 'floors'}")
                    if node:
                        self._node_and_writer(fleet, node, *configuration, depth, number)
                    else:
                        self._floors(fleet, echo, depth, number)
        self._clear()

    def _add(self, series, store, sync, depth, number, sample):
        self.measured.samples.append({"series": series, "store": store, "sync": sync, "depth": depth, "round": number,
                                      **sample})
        return sample

    def _floors(self, fleet, echo, depth, number):
        self._add("fdatasync", None, None, depth, number, self._writer(fleet, "fdatasync", None, None, depth))
        self._add("exchange", None, None, depth, number, self._exchange(fleet, echo, depth))

    def _node_and_writer(self, fleet, node, store, sync, depth, number):
        sample = self._add("node", store, sync, depth, number, self._node(fleet, node, depth))
        self._add("writer", store, sync, depth, number,
                  self._writer(fleet, "writer", store, sync, max(1, round(sample["batch"]))))

    def _streams(self, depth):
        """A stream without a request would measure nothing."""
        return ["--streams", str(min(self.plan.streams, depth))]

    def _take_stats(self, fleet, node):
        """The node's counters since the last time."""
        return self._tool(fleet, [self.programs["dogwood-ctl"], "--at", node.address, "--run-id", RUN_ID, "--json",
                                  "stats", "--reset"], START_SECONDS)

    def _node(self, fleet, node, depth):
        command = self._client(node, "--depths", depth, "--seconds", self.plan.seconds, "--buckets",
                               *self._streams(depth))
        self._take_stats(fleet, node)
        answer = self._tool(fleet, command, self.plan.seconds)
        stats = self._take_stats(fleet, node)
        answer["batch"] = stats["appended_records"] / stats["batches"]
        wrong = {name: count for name, count in answer["answers"].items() if name != "VOTE_YES"}
        if wrong:
            raise EnvironmentFailure(f"{node.name} answered votes on new transactions with {wrong}; see "
                                     f"{node.log_path}")
        return answer

    def _exchange(self, fleet, echo, depth):
        command = [self.programs["dogwood-bench-log"], "--connect", echo.address, "--run-id", STREAM_RUN_ID, "--bytes",
                   str(self.plan.bytes), "--depths", str(depth), "--seconds", str(self.plan.seconds),
                   *self._streams(depth)]
        return self._tool(fleet, command, self.plan.seconds)

    def _writer(self, fleet, series, store, sync, batch):
        command = [self.programs["dogwood-bench-writer"], "--batches", str(batch), "--seconds", str(self.plan.seconds),
                   "--bytes", str(self.plan.bytes)]
        path = None
        if series == "fdatasync":
            path = self._fresh_dir()
            command += ["--floor", "fdatasync", "--data", path]
        else:
            command += ["--sync", sync]
            if store == "rocksdb":
                path = self._fresh_dir()
                command += ["--data", path]
        answer = self._tool(fleet, command, self.plan.seconds)
        if path:
            shutil.rmtree(path)
        return {"per_s": answer["records_per_s"], "p50_us": answer["p50_us"], "p99_us": answer["p99_us"],
                "batch": batch}

    def _tool(self, fleet, command, seconds):
        lines = fleet.run_tool(command, seconds + START_SECONDS)
        if len(lines) != 1:
            raise EnvironmentFailure(f"{os.path.basename(command[0])} printed {len(lines)} lines instead of one")
        return lines[0]

    def _clear(self):
        for name in os.listdir(self.data):
            shutil.rmtree(os.path.join(self.data, name))

    def _main_configuration(self):
        """What the figures apart from the depths are taken with: the most durable that is asked for."""
        return self.plan.configurations()[0]

    def _burst(self):
        store, sync = self._main_configuration()
        self.progress(f"{self.plan.burst} appends at once, {self.plan.delay_ms:g} ms injected: "
                      f"{describe(store, sync)}")
        with Fleet(self.log_dir) as fleet:
            node, _ = self._start_node(fleet, store, sync, "storage-burst", self.plan.delay_ms)
            command = self._client(node, "--burst", self.plan.burst, "--rounds", self.plan.burst_rounds, "--buckets")
            seconds = self.plan.burst_rounds * (0.1 + self.plan.delay_ms / 1e3)
            self.measured.burst = {"store": store, "sync": sync, "delay_ms": self.plan.delay_ms,
                                   **self._tool(fleet, command, seconds)}
        self._clear()

    def _entries(self):
        """Nodes that hold so many entries, measured in turn. Measuring adds entries, so all but the fullest node are
        made anew for each turn."""
        store, sync = self._main_configuration()
        *small, large = sorted(self.plan.entries)
        with Fleet(self.log_dir) as fleet:
            full, _ = self._filled_node(fleet, store, sync, large, "storage-entries-full")
            for number in range(1, self.plan.entries_rounds + 1):
                for entries in small:
                    with Fleet(self.log_dir) as own:
                        node, path = self._filled_node(own, store, sync, entries, "storage-entries")
                        self._measure_entries(own, node, entries, number)
                    shutil.rmtree(path)
                self._measure_entries(fleet, full, large, number)
        self._clear()

    def _filled_node(self, fleet, store, sync, entries, name):
        node, path = self._start_node(fleet, store, sync, name)
        self.progress(f"filling a node with {entries:,} entries: {describe(store, sync)}")
        # A closed loop passes the count by what is in flight.
        depth = min(PRELOAD_DEPTH, entries)
        command = self._client(node, "--depths", depth, "--warm-up", 0, "--count", max(1, entries - depth), "--seconds",
                               PRELOAD_SECONDS)
        self._tool(fleet, command, PRELOAD_SECONDS)
        return node, path

    def _measure_entries(self, fleet, node, entries, number):
        command = self._client(node, "--depths", ENTRIES_DEPTH, "--warm-up", ENTRIES_WARM_UP, "--seconds",
                               ENTRIES_SECONDS, *self._streams(ENTRIES_DEPTH))
        answer = self._tool(fleet, command, ENTRIES_SECONDS)
        self.measured.entries.append({"entries": entries, "round": number, "depth": ENTRIES_DEPTH, **answer})


def describe(store, sync):
    """"rocksdb, synced" and the like; nothing for a floor."""
    if store is None:
        return ""
    if store == "memory":
        return "memory"
    return f"{store}, {'synced' if sync == 'on' else 'not synced'}"

"""Do real compute and storage processes commit at the cost that the paper says, lose nothing in a crash, and decide, or
block, as their protocol must?"""

import os
import shutil
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts"))

from dogwood_lib.cluster import free_addresses, write_cluster_file  # noqa: E402
from dogwood_lib.control import Control  # noqa: E402
from dogwood_lib.processes import Node  # noqa: E402
from dogwood_lib.programs import build_dir, find_program  # noqa: E402

PATIENCE = 60  # seconds after which a condition will not come true any more
COSTS = {  # docs/design.md, section 3, for one other writer: log writes, forced ones, messages
    "cornus": (4, 2, 3),
    "2pc": (4, 3, 3),
}


class Cluster:
    """Compute nodes over one storage node, each of which can be killed and started again at its address."""

    def __init__(self, case, protocol, compute=2, timeout_ms=100, **settings):
        self.folder = tempfile.mkdtemp(prefix="dogwood-test-")
        case.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        case.addCleanup(self.stop)
        self.protocol = protocol
        self.timeout_ms = timeout_ms
        self.addresses = free_addresses(compute + 1)
        self.cluster_file = os.path.join(self.folder, "cluster")
        write_cluster_file(self.cluster_file, self.addresses[:-1], self.addresses[-1:])
        self.settings = {"records": 2000, "read_pct": 50, "remote_access_pct": 50, **settings}
        self.control = Control(find_program("dogwood-ctl", build_dir()), "test")
        self.storage = None
        self.compute = [None] * compute
        self.start_storage()
        for node in range(compute):
            self.start(node)
        self.until(lambda: all(state["peers_up"] == state["peers"] for state in self.status()))

    def start_storage(self):
        self.storage = Node("storage", [
            find_program("dogwood-storage", build_dir()), "--id", "0", "--listen", self.addresses[-1], "--data",
            os.path.join(self.folder, "data"), "--run-id", "test", "--sync", "off"], self.log("storage"))
        self.storage.wait_ready()

    def start(self, node, *failpoints):
        command = [find_program("dogwood-compute", build_dir()), "--id", str(node), "--listen", self.addresses[node],
                   "--cluster", self.cluster_file, "--run-id", "test", "--protocol", self.protocol,
                   "--vote-timeout-ms", str(self.timeout_ms), "--decision-timeout-ms", str(self.timeout_ms),
                   "--vote-request-timeout-ms", str(3 * self.timeout_ms)]
        for key, value in self.settings.items():
            command += ["--set", f"{key}={value}"]
        for failpoint in failpoints:
            command += ["--failpoint", failpoint]
        if self.compute[node] is not None:
            self.compute[node].stop()
        self.compute[node] = Node(f"compute-{node}", command, self.log(f"compute-{node}"))
        self.compute[node].wait_ready()

    def log(self, name):
        return os.path.join(self.folder, name + ".log")

    def kill(self, node):
        self.compute[node].process.kill()
        self.compute[node].stop()

    def stop(self):
        for node in [*self.compute, self.storage]:
            if node is not None:
                node.stop()

    def call(self, node, *words):
        return self.control.call(self.addresses[node], *words)

    def status(self):
        return [self.call(node, "status") for node in range(len(self.compute))]

    def until(self, condition):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError("the condition did not come true")
            time.sleep(0.02)

    def begin(self, seconds):
        for node in range(len(self.compute)):
            self.call(node, "begin", "--warmup-ms", "0", "--duration-ms", str(round(seconds * 1000)))

    def until_done(self, nodes):
        self.until(lambda: all(self.call(node, "status")["state"] == "done" for node in nodes))

    def run(self, seconds):
        self.begin(seconds)
        self.until_done(range(len(self.compute)))
        return [self.call(node, "report") for node in range(len(self.compute))]

    def digests(self):
        return [self.call(node, "digest") for node in range(len(self.compute))]


def alarms(report):
    return sum(report["alarms"].values())


class Costs(unittest.TestCase):
    def test_a_commit_costs_what_the_table_says(self):
        for protocol, expected in COSTS.items():
            with self.subTest(protocol):
                # What a time-out asks again is counted again: on a busy machine none may pass.
                cluster = Cluster(self, protocol, timeout_ms=30000, read_pct=0)
                reports = cluster.run(1)
                total = {key: sum(report["dist"][key] for report in reports)
                         for key in ("costed", "log_writes", "forced_log_writes", "messages", "acks", "ends", "committed")}
                self.assertGreater(total["committed"], 0)
                commits = total["costed"]
                self.assertEqual((total["log_writes"], total["forced_log_writes"], total["messages"]),
                                 tuple(count * commits for count in expected))
                self.assertEqual(total["acks"], commits)
                self.assertEqual(total["ends"], commits if protocol == "2pc" else 0)
                self.assertEqual([alarms(report) for report in reports], [0, 0])
                cluster.stop()

    def test_the_parts_of_the_latency_add_up(self):
        cluster = Cluster(self, "cornus", distributed_pct=50)
        for report in cluster.run(0.5):
            for kind in ("dist", "local"):
                part = report[kind]
                self.assertGreater(part["committed"], 0)
                self.assertEqual(part["execution_us"] + part["prepare_us"] + part["commit_us"] + part["abort_us"],
                                 part["total_us"])
                self.assertEqual(sum(count for _, count in part["hist"]), part["committed"])


class Recovery(unittest.TestCase):
    def test_a_restarted_node_has_every_committed_change(self):
        for protocol in COSTS:
            with self.subTest(protocol):
                cluster = Cluster(self, protocol, theta=0.8)
                cluster.run(0.5)
                before = cluster.digests()
                for node in range(2):
                    cluster.kill(node)
                cluster.storage.process.kill()
                cluster.storage.stop()
                cluster.start_storage()
                for node in range(2):
                    cluster.start(node)
                self.assertEqual(cluster.digests(), before)
                self.assertEqual([state["incarnation"] for state in cluster.status()], [2, 2])
                self.assertEqual([digest["locks"] for digest in before], [0, 0])
                cluster.stop()

    def test_a_node_killed_under_load_comes_back_to_the_same_data(self):
        for protocol in COSTS:
            with self.subTest(protocol):
                cluster = Cluster(self, protocol, compute=3, theta=0.8)
                cluster.begin(2)
                cluster.until(lambda: cluster.call(1, "status")["committed"] > 100)
                cluster.kill(1)
                cluster.start(1)
                cluster.until_done([0, 2])
                cluster.until(lambda: all(state["transactions"] == 0 for state in cluster.status()))
                self.assertEqual([state["alarms"] for state in cluster.status()], [0, 0, 0])
                before = cluster.digests()
                for node in range(3):
                    cluster.kill(node)
                for node in range(3):
                    cluster.start(node)
                self.assertEqual(cluster.digests(), before)
                cluster.stop()


class Failpoints(unittest.TestCase):
    """The coordinator is killed when it knows all votes, before anybody hears a decision: Figures 1b and 4a."""

    def crash_coordinator(self, protocol):
        cluster = Cluster(self, protocol, read_pct=0)
        cluster.kill(0)
        cluster.start(0, "coordinator-after-votes=kill@20")
        cluster.until(lambda: all(state["peers_up"] == state["peers"] for state in cluster.status()))
        cluster.call(0, "begin", "--duration-ms", "60000")
        cluster.until(lambda: cluster.compute[0].process.poll() is not None)
        with open(cluster.log("compute-0"), encoding="utf-8") as log:
            self.assertIn("failpoint coordinator-after-votes reached", log.read(), "fault not observed")
        return cluster

    def test_cornus_participants_decide_without_the_coordinator(self):
        cluster = self.crash_coordinator("cornus")
        cluster.until(lambda: cluster.call(1, "status")["transactions"] == 0)
        self.assertEqual(cluster.call(1, "digest")["locks"], 0)
        after = cluster.call(1, "digest")["digest"]
        cluster.start(0)
        cluster.until(lambda: all(state["transactions"] == 0 for state in cluster.status()))
        self.assertEqual(cluster.call(1, "digest")["digest"], after)
        self.assertEqual([state["alarms"] for state in cluster.status()], [0, 0])

    def test_2pc_participants_block_until_the_coordinator_returns(self):
        cluster = self.crash_coordinator("2pc")
        cluster.until(lambda: cluster.call(1, "status")["in_doubt"] > 0)
        # Whoever is not in doubt gives up or ends; who is in doubt stays, whatever time passes.
        cluster.until(lambda: (lambda state: state["transactions"] == state["in_doubt"])(cluster.call(1, "status")))
        self.assertGreater(cluster.call(1, "digest")["locks"], 0)
        cluster.start(0)
        cluster.until(lambda: all(state["transactions"] == 0 for state in cluster.status()))
        self.assertEqual(cluster.call(1, "digest")["locks"], 0)
        self.assertEqual([state["alarms"] for state in cluster.status()], [0, 0])


if __name__ == "__main__":
    unittest.main()

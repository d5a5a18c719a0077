"""Do nodes refuse a peer that must not be heard: one of another protocol, one that speaks in another's name?"""

import json
import os
import subprocess
import threading

from support import BUILD, CTL, PATIENCE, RUN, Case, program, run

COMPUTE = os.path.join(BUILD, "bin", "dogwood-compute")
NOWHERE = "127.0.0.1:1"


class Peers(Case):
    """Compute nodes over one storage node."""

    def setUp(self):
        super().setUp()
        self.storage = self.node("--store", "memory", number=0)

    def compute(self, number, protocol, *addresses):
        """A compute node that serves, and its address."""
        cluster = os.path.join(self.base, f"cluster-{number}")
        with open(cluster, "w", encoding="utf-8") as file:
            file.writelines(f"compute {node} {address}\n" for node, address in enumerate(addresses))
            file.write(f"storage 0 {self.storage.address}\n")
        process = subprocess.Popen([COMPUTE, "--id", str(number), "--run-id", RUN, "--cluster", cluster, "--set",
                                    "records=1000", "--protocol", protocol],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        # What hangs is ended, so that a line that never comes is an empty one.
        watch = threading.Timer(PATIENCE, process.kill)
        self.addCleanup(watch.cancel)
        watch.start()
        return process, process.stdout.readline().split()[1]

    def status(self, address):
        done = run([CTL, "--at", address, "--run-id", RUN, "--json", "status"])
        return json.loads(done.stdout)

    def forge(self, *words):
        done = run([program("forged_client"), *map(str, words)])
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.rstrip("\n")

    def test_nodes_of_two_protocols_refuse_each_other(self):
        _, first = self.compute(0, "cornus", NOWHERE, NOWHERE)
        second, address = self.compute(1, "2pc", first, NOWHERE)
        self.assertEqual(second.stderr.readline(), "dogwood-compute 1: protocol \"2pc\" of compute node 1 is refused by "
                         "compute node 0, whose protocol is \"cornus\"; start both with the same --protocol\n")
        for each in first, address:
            status = self.status(each)
            while status["peers_up"] == 0:  # until the storage node is
                status = self.status(each)
            self.assertEqual((status["peers_up"], status["peers"]), (1, 2))
        begin = run([CTL, "--at", address, "--run-id", RUN, "begin", "--duration-ms", "1000"])
        self.assertNotEqual(begin.returncode, 0)
        self.assertIn("not all peers are connected", begin.stderr)
        second.kill()
        second.wait(PATIENCE)
        _, third = self.compute(1, "cornus", first, NOWHERE)
        for each in first, third:
            while self.status(each)["peers_up"] < 2:
                pass

    def test_a_compute_node_is_not_heard_in_the_name_of_another(self):
        process, address = self.compute(0, "cornus", NOWHERE, NOWHERE, NOWHERE)
        for item, what in ("vote", "commit message"), ("access", "access request"):
            line = (f"{what}: the sender is not the node that sent it: refused by compute node 0, which closes the stream "
                    "of compute node 2")
            self.assertEqual(self.forge(address, "compute", 0, RUN, "cornus", "compute", 2, item, 1), f"down {line}")
            self.assertEqual(process.stderr.readline(), f"dogwood-compute 0: {line}\n")
        self.assertIn("the cluster file does not list",
                      self.forge(address, "compute", 0, RUN, "", "client", 1, "vote", 1))
        status = self.status(address)
        self.assertEqual(status["refused"], {"accesses": 0, "messages": 0, "batches": 3})
        self.assertEqual(status["transactions"], 0)

    def test_a_storage_node_takes_no_request_in_the_name_of_another(self):
        words = self.storage.address, "storage", 0, RUN, "cornus"
        self.assertEqual(self.forge(*words, "compute", 2, "log", 1),
                         "down log request: the writer is not the node that sent it: refused by storage node 0, which "
                         "closes the stream")
        self.assertIn("a storage node", self.forge(*words[:-1], "", "storage", 2, "log", 2))
        self.assertEqual(self.storage.scan(0), [])
        self.assertEqual(self.forge(*words, "compute", 2, "log", 2), "reply ABORT")
        # A tool may write in any name; the answer is what the entry holds since.
        self.assertEqual(self.forge(*words[:-1], "", "client", 0, "log", 1), "reply ABORT")
        self.assertEqual([record["writer"] for record in self.storage.scan(0)], [2])

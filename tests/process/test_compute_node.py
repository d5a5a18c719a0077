"""Does a compute node end, or refuse to start, with one line where it cannot go on? And does it go on where it can?"""

import json
import os
import subprocess

from support import BUILD, CTL, PATIENCE, RUN, Case, run

COMPUTE = os.path.join(BUILD, "bin", "dogwood-compute")
NOWHERE = "127.0.0.1:1"


class ComputeNode(Case):
    """Compute nodes over one storage node."""

    def setUp(self):
        super().setUp()
        self.storage = self.node("--store", "memory", number=0)

    def words(self, number, *addresses):
        cluster = os.path.join(self.base, f"cluster-{number}")
        with open(cluster, "w", encoding="utf-8") as file:
            file.writelines(f"compute {node} {address}\n" for node, address in enumerate(addresses))
            file.write(f"storage 0 {self.storage.address}\n")
        return ["--id", str(number), "--run-id", RUN, "--cluster", cluster, "--set", "records=1000"]

    def compute(self, *words):
        """A compute node that serves, and its address."""
        process = subprocess.Popen([COMPUTE, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process, process.stdout.readline().split()[1]

    def ctl(self, address, *words):
        return run([CTL, "--at", address, "--run-id", RUN, "--json", *map(str, words)])

    def begin(self, address, duration_ms):
        done = None
        while done is None or "not all peers are connected" in done.stderr:
            done = self.ctl(address, "begin", "--duration-ms", duration_ms)
        self.assertEqual(done.returncode, 0, done.stderr)

    def status(self, address):
        return json.loads(self.ctl(address, "status").stdout)

    def vote(self, *more):
        self.storage.ctl("log", 0, "vote", "0:1:5", *more)
        return self.refused(3, *self.words(0, NOWHERE), command=COMPUTE)

    def test_a_vote_that_cannot_be_applied_is_refused(self):
        self.assertIn("0:1:5 that cannot be applied", self.vote("--redo", "hello"))

    def test_a_vote_whose_list_lacks_the_own_log_is_refused(self):
        self.assertIn("0:1:5 that cannot be applied", self.vote("--participants", "5"))

    def test_a_log_of_the_other_protocol_is_refused(self):
        """Else 2PC would presume abort for what Cornus committed."""
        words = self.words(0, NOWHERE, NOWHERE)
        self.storage.ctl("log", 0, "vote", "0:1:5", "--participants", "0,1")
        self.storage.ctl("log", 0, "decide-commit", "0:1:5")
        error = self.refused(3, *words, "--protocol", "2pc", command=COMPUTE)
        self.assertIn("log 0 was written by another protocol than 2pc", error)
        self.storage.ctl("log", 1, "coord-commit", "1:1:5", "--participants", "0,1")
        words[words.index("--id") + 1] = "1"
        error = self.refused(3, *words, "--protocol", "cornus", command=COMPUTE)
        self.assertIn("log 1 was written by another protocol than cornus", error)

    def test_more_than_one_message_can_hold_arrives_in_several(self):
        """Rows of 12,800 bytes, 64 a transaction, to 16 slots at once; all are read, so that none has a reason to abort."""
        more = ["--threads", "16", "--request-timeout-ms", PATIENCE * 1000, "--set", "record_bytes=12800", "--set",
                "accesses=64", "--set", "read_pct=100", "--set", "distributed_pct=100", "--set", "remote_access_pct=100"]
        _, first = self.compute(*self.words(0, NOWHERE, NOWHERE), *more)
        self.compute(*self.words(1, first, NOWHERE), *more)
        self.begin(first, 1000)
        status = self.status(first)
        while status["state"] != "done":
            status = self.status(first)
        self.assertGreater(status["committed"], 0)
        self.assertEqual((status["aborted"], status["transactions"]), (0, 0))

    def test_a_node_that_is_fenced_at_work_ends(self):
        process, address = self.compute(*self.words(0, NOWHERE))
        self.begin(address, PATIENCE * 1000)
        while self.status(address)["committed"] == 0:
            pass
        self.storage.ctl("fence", 0)
        self.assertEqual(process.wait(PATIENCE), 3)
        self.assertRegex(process.stderr.read(), r"\A[^\n]*alarm FENCED[^\n]*\n\Z")

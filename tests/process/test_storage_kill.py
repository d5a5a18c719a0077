"""Is every acknowledged vote there after kill -9? The node is killed DW_KILLS times while a client keeps votes in flight;
the client writes down each acknowledgement before it sends anything else."""

import os
import random
import signal
import subprocess
import unittest

from support import PATIENCE, RUN, Case, program

KILLS = int(os.environ.get("DW_KILLS", "10"))
SEED = int(os.environ.get("DW_SEED", "20240607"))
DEPTH = 64
REDO = 100
STRIDE = 10_000_000  # sequence numbers of one round


class Kill(Case):
    def load(self, node, first, acknowledgements, with_signal=signal.SIGKILL):
        """Runs the client until it noted so many, ends the node, and returns all that were noted."""
        client = subprocess.Popen([program("load_client"), node.address, "1", RUN, "0", str(first), str(DEPTH), str(REDO)],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        noted = []
        for line in client.stdout:
            noted.append(int(line))
            if len(noted) == acknowledgements:
                node.process.send_signal(with_signal)
        self.ended = node.wait()
        self.assertEqual((client.wait(PATIENCE), client.stderr.read()), (0, ""))
        client.stdout.close()
        client.stderr.close()
        return noted

    def check(self, records, noted):
        found = {record["txn"]: record for record in records}
        missing = [sequence for sequence in noted if f"0:1:{sequence}" not in found]
        self.assertEqual(missing, [], f"{len(missing)} of {len(noted)} acknowledged votes are gone")
        for sequence in noted:
            record = found[f"0:1:{sequence}"]
            self.assertEqual((record["record"], record["redo_bytes"]), ("VOTE_YES", REDO))
            self.assertTrue(record["redo"].startswith(sequence.to_bytes(8, "little").hex()))

    def test_acknowledged_votes_survive(self):
        chance = random.Random(SEED)
        print(f"seed {SEED}, kills {KILLS}", flush=True)
        everything = []
        position = 0
        for round_ in range(KILLS):
            node = self.rocksdb()
            noted = self.load(node, round_ * STRIDE, chance.randint(1, 1000))
            node = self.rocksdb()
            records = node.scan(0, "--from", position + 1, "--hex")
            self.check(records, noted)
            position = max(record["position"] for record in records)
            everything += noted
            # The next start finds what an ordinary end leaves, or what a kill of an idle node leaves.
            node.stop() if round_ % 2 == 0 else node.process.kill()
            node.close()
        node = self.rocksdb()
        self.check(node.scan(0, "--hex"), everything)
        self.assertGreater(len(everything), 100 * KILLS)

    def test_clean_stop_under_load(self):
        noted = []
        for round_ in range(5):
            node = self.rocksdb()
            noted += self.load(node, round_ * STRIDE, 100, signal.SIGTERM)
            self.assertEqual((self.ended, node.stderr()), (0, ""))
        self.check(self.rocksdb().scan(0, "--hex"), noted)


if __name__ == "__main__":
    unittest.main()

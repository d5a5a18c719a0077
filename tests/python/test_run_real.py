"""Does `dogwood run` work with the real programs, and do real processes send and log what the table of docs/design.md,
section 3, says of a transaction with one other writer?"""

import csv
import os
import subprocess
import tempfile
import unittest

from run_support import DOGWOOD

BUILD = os.environ.get("DW_BUILD_DIR")

# Every access writes, so both nodes of a distributed transaction are writers: n = 1.
EXPERIMENT = """
log_delay_ms = 2
duration_s = 1
warmup_s = 0.2
trials = 1
threads = 2
[ycsb]
records = 2000
read_pct = 0
"""
COSTS = {"cornus": ("4.0000", "2.0000", "3.0000"), "2pc": ("4.0000", "3.0000", "3.0000")}
MOMENT = 2000  # of the injected delay, in microseconds


@unittest.skipUnless(BUILD, "DW_BUILD_DIR names no build")
class Real(unittest.TestCase):
    def test_a_run(self):
        with tempfile.TemporaryDirectory() as folder:
            path, out = os.path.join(folder, "real.toml"), os.path.join(folder, "out")
            with open(path, "w", encoding="utf-8") as file:
                file.write(EXPERIMENT)
            done = subprocess.run([DOGWOOD, "run", path, "--out", out, "--no-figures"], capture_output=True, text=True,
                                  timeout=200)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
            with open(os.path.join(out, "summary.csv"), encoding="utf-8", newline="") as file:
                rows = {row["protocol"]: row for row in csv.DictReader(file)}
        self.assertEqual(set(rows), set(COSTS))
        for protocol, row in rows.items():
            with self.subTest(protocol):
                self.check(protocol, row)

    def check(self, protocol, row):
        self.assertEqual((row["log_writes_per_dist"], row["forced_log_writes_per_dist"], row["messages_per_dist"]),
                         COSTS[protocol])
        number = {name: float(text) for name, text in row.items() if text.replace(".", "", 1).isdigit()}
        parts = sum(number[f"dist_{part}_us"] for part in ("execution", "prepare", "commit", "abort"))
        self.assertAlmostEqual(parts, number["dist_mean_us"], delta=1)
        # What the protocol waits for cannot take less than its injected delays.
        self.assertGreaterEqual(number["dist_prepare_us"], MOMENT)
        self.assertGreaterEqual(number["dist_commit_us"], MOMENT if protocol == "2pc" else 0)
        self.assertGreaterEqual(number["dist_p50_us"], 2 * MOMENT if protocol == "2pc" else MOMENT)
        self.assertEqual((row["unknown"], row["local_committed"]), ("0", "0"))
        self.assertLessEqual(number["dist_p50_us"], number["dist_p99_us"])
        self.assertLessEqual(number["dist_p99_us"], number["dist_max_us"])


if __name__ == "__main__":
    unittest.main()

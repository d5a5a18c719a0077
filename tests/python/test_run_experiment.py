"""Is an experiment checked before anything starts, with one line that names the key and the mend, and does it span the
points that it says?"""

import os
import subprocess
import unittest

from run_support import FakeCluster

from dogwood_lib import experiment
from dogwood_lib.errors import AskedWrongly
from dogwood_lib.experiment_keys import KEYS, default_timeout_ms


class Files(FakeCluster):
    """Loaded from files; nothing is started."""

    def load(self, text, *overrides):
        return experiment.load(self.write(text), overrides)

    def assert_bad(self, text, *parts, overrides=()):
        with self.assertRaises(AskedWrongly) as caught:
            self.load(text, *overrides)
        message = str(caught.exception)
        self.assertNotIn("\n", message)
        for part in parts:
            self.assertIn(part, message)

    def test_defaults(self):
        plan = self.load("")
        self.assertEqual(plan.name, "one")
        self.assertEqual([point["protocol"] for point in plan.points], ["cornus", "2pc"])
        expected = {"compute_nodes": 2, "storage_nodes": 2, "threads": 4, "log_delay_ms": 0, "log_delay_dist": "constant",
                    "loop": "closed", "duration_s": 10, "warmup_s": 2, "trials": 3, "seed": 1, "sync": True,
                    "batch_accesses": True, "workload": "ycsb", "ycsb.records": 100000, "ycsb.record_bytes": 1000,
                    "ycsb.accesses": 16, "ycsb.read_pct": 50, "ycsb.distributed_pct": 100, "ycsb.remote_access_pct": 50,
                    "ycsb.theta": 0.0}
        self.assertEqual({key: plan.points[0][key] for key in expected}, expected)

    def test_unknown_keys_name_the_nearest(self):
        self.assert_bad("thread = 4", '"thread"', 'did you mean "threads"?')
        self.assert_bad("theta = 0.5", 'did you mean "ycsb.theta"?')
        self.assert_bad("[ycsb]\nrecord = 5", 'did you mean "ycsb.records"?')
        self.assert_bad("[ycsb]\nthreads = 5", 'did you mean "threads"?')
        self.assert_bad("zzz = 1", '"zzz"', "docs/experiments.md")
        self.assert_bad("[tpcc]\nx = 1", '"tpcc"')
        self.assert_bad("ycsb = 3", "[ycsb]")

    def test_each_key_refuses_another_type(self):
        for key, (kind, _) in KEYS.items():
            table, _, leaf = key.rpartition(".")
            head = f"[{table}]\n" if table else ""
            for wrong in ('"wrong value!"', "{ a = 1 }", "1979-05-27", "nan"):
                self.assert_bad(f"{head}{leaf} = {wrong}", f"{key} = ", kind.allowed())
            if kind.accepts(1):
                self.assert_bad(f"{head}{leaf} = true", f"{key} = true")

    def test_ranges(self):
        for text in ("threads = 0", "threads = 1025", "threads = 1.5", "compute_nodes = 65", "storage_nodes = 0",
                     "log_delay_ms = -1", "log_delay_ms = 60001", "trials = 0", "duration_s = 0", "warmup_s = -0.1",
                     "seed = -1", 'sync = "on"', "sync = 1", "[ycsb]\nread_pct = 100.5", "[ycsb]\ntheta = -0.1",
                     "[ycsb]\nrecords = 0", "[ycsb]\naccesses = 129", 'name = "a/b"', 'name = ""', 'name = ".x"'):
            key = text.splitlines()[-1].split(" = ")[0]
            self.assert_bad(text, f"{key} = ", "give ")

    def test_words_name_the_nearest(self):
        self.assert_bad('protocol = "cornos"', 'did you mean "cornus"?')
        self.assert_bad('log_delay_dist = "normal"', '"lognormal"')

    def test_sweeps(self):
        plan = self.load("log_delay_ms = [0, 4]\nthreads = [1, 2]")
        self.assertEqual(len(plan.points), 8)
        self.assertEqual(plan.swept(), ["protocol", "threads", "log_delay_ms"])
        self.assertEqual(plan.label(plan.points[-1]), "2pc threads=2 log_delay_ms=4")
        self.assertEqual(plan.slug(plan.points[-1], 3), "2pc-threads-2-log_delay_ms-4-t3")
        self.assert_bad("log_delay_ms = []", "log_delay_ms = []")
        self.assert_bad("log_delay_ms = [4, 4]", "4 twice")
        self.assert_bad("log_delay_ms = [4, [5]]", "log_delay_ms = [5]")
        self.assert_bad("trials = [1, 2]", "trials cannot be a list")

    def test_files(self):
        self.assert_bad("threads = \n", "broken TOML", "line 1")
        self.assert_bad("threads = 1\nthreads = 2\n", "broken TOML")
        for path, part in ((os.path.join(self.folder, "none.toml"), "No such file"), (self.folder, "directory")):
            with self.assertRaisesRegex(AskedWrongly, part):
                experiment.load(path)
        path = self.write("")
        with open(path, "wb") as file:
            file.write(b'name = "\xff"')
        with self.assertRaisesRegex(AskedWrongly, "UTF-8"):
            experiment.load(path)

    def test_overrides(self):
        plan = self.load("threads = 4\n[ycsb]\ntheta = 0.5", "threads=8", "ycsb.theta=[0, 0.9]", "protocol=2pc", "sync=false",
                         'name="two"')
        self.assertEqual(plan.name, "two")
        self.assertEqual([(point["protocol"], point["threads"], point["ycsb.theta"], point["sync"]) for point in plan.points],
                         [("2pc", 8, 0, False), ("2pc", 8, 0.9, False)])
        for override, part in (("threads", "key=value"), ("=4", "key=value"), ("threads=", "key=value"),
                               ("theta=1", 'did you mean "ycsb.theta"?'), ("threads=many", 'threads = "many"'),
                               ("threads=4\nseed = 5", "no TOML value"), ("threads=[1,", "no TOML value")):
            self.assert_bad("", "-s", part, overrides=[override])

    def test_time_outs_follow_the_log_delay(self):
        self.assertEqual([default_timeout_ms(0, "constant"), default_timeout_ms(32, "constant"),
                          default_timeout_ms(500, "constant"), default_timeout_ms(500, "exponential")],
                         [1000, 1000, 5000, 10000])
        points = self.load("log_delay_ms = [0, 500]").points
        self.assertEqual([point["vote_timeout_ms"] for point in points], [1000, 1000, 5000, 5000])
        for key in experiment.TIMEOUTS:
            self.assert_bad(f"log_delay_ms = [0, 50]\n{key} = 49", f"{key} = 49", "log_delay_ms = 50", "give 1000")
            self.assertEqual(self.load(f"log_delay_ms = [0, 50]\n{key} = 50").points[0][key], 50)

    def test_delay_parameters(self):
        self.assert_bad("log_delay_ms = 4\nlog_delay_param = 1", "log_delay_param", "constant")
        self.assert_bad('log_delay_ms = 4\nlog_delay_dist = "uniform"\nlog_delay_param = 5', "0 to 4")
        self.assert_bad('log_delay_ms = 4\nlog_delay_dist = "lognormal"\nlog_delay_param = 3.5', "0 to 3")
        self.assertEqual(self.load('log_delay_ms = 4\nlog_delay_dist = "uniform"\nlog_delay_param = 2.5')
                         .points[0]["log_delay_param"], 2.5)

    def test_what_fits_together(self):
        self.assert_bad("[ycsb]\nrecords = 15", "ycsb.records = 15", "ycsb.accesses = 16")
        self.assert_bad('loop = "open"', "rate_tps")
        self.assert_bad("rate_tps = 100", "rate_tps", 'loop = "open"')

    def test_points_that_do_not_differ_are_one(self):
        points = self.load('loop = ["closed", "open"]\nrate_tps = [100, 200]\nprotocol = "cornus"').points
        self.assertEqual([(point["loop"], point["rate_tps"]) for point in points],
                         [("closed", None), ("open", 100), ("open", 200)])

    def test_the_effective_file_spans_the_same_points(self):
        plan = self.load('log_delay_ms = [0.5, 4]\nloop = "open"\nrate_tps = 10.0\nsync = [true, false]\n[ycsb]\ntheta = 0.99')
        again = experiment.load(self.write(plan.to_toml(), "again.toml"))
        self.assertEqual(again.points, plan.points)
        self.assertEqual(again.to_toml(), plan.to_toml())
        self.assertIn("# vote_timeout_ms is not given: 1000 ms\n", plan.to_toml())

    def test_protocols_are_neighbours_and_take_turns(self):
        runs = [(point["protocol"], point["log_delay_ms"], trial)
                for point, trial in self.load("log_delay_ms = [0, 4]\ntrials = 2").schedule()]
        self.assertEqual(runs, [("cornus", 0, 1), ("2pc", 0, 1), ("cornus", 4, 1), ("2pc", 4, 1),
                                ("2pc", 0, 2), ("cornus", 0, 2), ("2pc", 4, 2), ("cornus", 4, 2)])


class Calls(FakeCluster):
    """The real program."""

    def test_a_refusal_starts_nothing(self):
        self.assert_refused(self.experiment("thread = 4\n"), 2, "dogwood run: ", 'did you mean "threads"?')
        self.assert_refused(self.experiment("", "-s", "threads=0"), 2, "-s threads=0: threads = 0", "1 to 1024")
        self.assert_refused(self.dogwood("run"), 2, "EXPERIMENT.toml")
        self.assertEqual((self.started(), os.path.exists(self.results)), ([], False))

    def test_a_dry_run_starts_nothing(self):
        done = self.experiment("log_delay_ms = [0, 4]\n", "--dry-run")
        self.assert_good(done)
        self.assertIn("4 points, 1 trial each: 4 runs", done.stdout)
        self.assertEqual([line.split("  ", 2)[-1] for line in done.stdout.splitlines()[1:3]],
                         ["cornus log_delay_ms=0  trial 1", "2pc log_delay_ms=0  trial 1"])
        self.assertEqual((self.started(), os.path.exists(self.results)), ([], False))

    def test_the_shipped_experiments_are_good(self):
        folder = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "scripts",
                              "experiments")
        names = sorted(os.listdir(folder))
        self.assertIn("quickstart.toml", names)
        for name in names:
            self.assert_good(self.dogwood("run", os.path.join(folder, name), "--dry-run"))

    def test_quickstart_refuses_what_it_does_not_know(self):
        script = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "scripts",
                              "quickstart")
        done = subprocess.run([script, "--fast"], capture_output=True, text=True, timeout=30)
        self.assert_refused(done, 2, "'--fast'")


if __name__ == "__main__":
    unittest.main()

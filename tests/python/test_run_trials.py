"""Does `dogwood run` come to a whole result or to none, whatever happens to nodes and launchers, and leave nothing behind?
Fake nodes stand in for the real ones."""

import json
import os
import re
import signal
import unittest

from run_support import FakeCluster

HEADER = (
    "workload,protocol,compute_nodes,storage_nodes,threads,log_delay_ms,log_delay_dist,loop,rate_tps,sync,batch_accesses,"
    "read_pct,distributed_pct,remote_access_pct,theta,seed,trial,duration_s,committed,aborted,unknown,throughput_tps,"
    "abort_pct,dist_committed,dist_mean_us,dist_p50_us,dist_p90_us,dist_p99_us,dist_p999_us,dist_max_us,dist_execution_us,"
    "dist_prepare_us,dist_commit_us,dist_abort_us,dist_release_us,dist_occupancy_us,local_committed,local_mean_us,"
    "local_p50_us,local_p99_us,log_writes_per_dist,forced_log_writes_per_dist,messages_per_dist,log_bytes_per_dist,"
    "cpu_us_per_txn,model_dist_mean_us,dist_wait_us,writers_per_dist,readers_per_dist,unfinished,undrained,offered,waiting,"
    "waiting_max_us")


class Whole(FakeCluster):
    def test_the_folder_of_a_run(self):
        done = self.experiment("log_delay_ms = [0, 4]\n", "-s", "trials=2")
        self.assert_good(done)
        self.assertEqual(sorted(os.listdir(self.results)), ["one"])
        self.assertEqual(sorted(os.listdir(self.out)), ["config.toml", "hist", "logs", "meta.json", "report.html",
                                                        "summary.csv", "trials"])
        self.assertEqual(self.read("summary.csv").splitlines()[0], HEADER)
        rows = [(row["protocol"], row["log_delay_ms"], row["trial"]) for row in self.rows()]
        self.assertEqual(rows, [("cornus", "0", "1"), ("cornus", "0", "2"), ("2pc", "0", "1"), ("2pc", "0", "2"),
                                ("cornus", "4", "1"), ("cornus", "4", "2"), ("2pc", "4", "1"), ("2pc", "4", "2")])
        self.assertEqual(len(os.listdir(os.path.join(self.out, "logs", "2pc-log_delay_ms-4-t2"))), 4)
        self.assertIn("The report is " + os.path.join(self.out, "report.html"), done.stdout)
        self.assertEqual(self.living(), [])

    def test_trials_take_turns_with_fresh_clusters(self):
        self.assert_good(self.experiment("", "-s", "trials=2"))
        nodes = [line for line in self.started() if line.startswith("dogwood-compute --id 0")]
        protocols = [re.search(r"--protocol (\S+)", line).group(1) for line in nodes]
        self.assertEqual(protocols, ["cornus", "2pc", "2pc", "cornus"])
        stores = [line for line in self.started() if line.startswith("dogwood-storage --id 0")]
        self.assertEqual(len({re.search(r"--run-id (\S+)", line).group(1) for line in stores}), 4)

    def test_nodes_are_asked_for_what_the_experiment_says(self):
        text = ('protocol = "2pc"\nlog_delay_ms = 2.5\nlog_delay_dist = "uniform"\nlog_delay_param = 1\nsync = false\n'
                'loop = "open"\nrate_tps = 300\nbatch_accesses = false\nthreads = 7\nseed = 9\ncompute_nodes = 3\n'
                'storage_nodes = 1\nvote_timeout_ms = 77\n[ycsb]\ntheta = 0.75\nrecords = 50\n')
        self.assert_good(self.experiment(text))
        storage, *compute = self.started()
        for part in ("--id 0", "--log-delay 2.5:uniform:1 ", "--sync off", "--store rocksdb"):
            self.assertIn(part, storage + " ")
        self.assertEqual(len(compute), 3)
        for part in ("--protocol 2pc ", "--threads 7 ", "--seed 9 ", "--loop open ", "--rate 100 ", "--vote-timeout-ms 77 ",
                     "--decision-timeout-ms 1000 ", "--batch-accesses off ", "--workload ycsb ", "--set theta=0.75 ",
                     "--set records=50 ", "--set distributed_pct=100 "):
            self.assertIn(part, compute[2] + " ")

    def test_progress_has_a_line_a_second(self):
        done = self.experiment("", "-s", "duration_s=2.4", "-s", "protocol=cornus")
        self.assert_good(done)
        lines = re.findall(r"\[1/1\] cornus trial 1 +[12] s measuring .* commits/s .* aborts/s  in doubt 0  blocked 0  p50 7 ms"
                           r"  p99 7.1 ms", done.stdout)
        self.assertEqual(len(lines), 2, done.stdout)

    def test_machine_and_floors_are_noted(self):
        self.assert_good(self.experiment("sync = [true, false]\n"))
        meta = json.loads(self.read("meta.json"))
        for name in ("version", "kernel", "cpu", "cores", "memory_mib", "file_system", "hosts", "commit", "dirty"):
            self.assertIn(name, meta)
        self.assertEqual(meta["floors"]["round_trip_us"], 100.0)
        self.assertEqual(meta["floors"]["log_append_us"], {"sync": 200.0, "no_sync": 10.0})

    def test_a_taken_port_is_no_end(self):
        self.fake = {"port_taken": 2}
        self.assert_good(self.experiment('protocol = "cornus"\n'))
        self.assertEqual(len([line for line in self.started() if line.startswith("dogwood-compute --id 0")]), 3)


class Failures(FakeCluster):
    def test_an_existing_result_is_not_overwritten(self):
        os.makedirs(self.out)
        self.assert_refused(self.experiment(), 2, self.out, "exists", "--out")
        self.assertEqual((os.listdir(self.out), self.started()), ([], []))

    def test_a_node_that_dies_is_named(self):
        self.fake = {"die": "compute-1"}
        done = self.experiment("", "-s", "duration_s=30")
        log = os.path.join(self.partial, "logs", "cornus-t1", "compute-1.log")
        self.assert_refused(done, 3, "compute-1 was killed by SIGKILL", "about to die", log, "--resume")
        self.assertTrue(os.path.exists(log))
        self.assertEqual((self.living(), os.path.exists(self.out)), ([], False))

    def test_a_node_that_refuses_is_the_callers_fault(self):
        self.fake = {"refuse": "records: 100 do not match the 50 that are loaded"}
        self.assert_refused(self.experiment(), 2, "compute-0", "records: 100 do not match", "compute-0.log")
        self.assertEqual(self.living(), [])

    def test_no_free_port(self):
        self.fake = {"port_taken": 99}
        self.assert_refused(self.experiment(), 3, "compute-0", "port is in use", "3 attempts")
        self.assertEqual(self.living(), [])

    def test_nothing_committed(self):
        self.fake = {"committed": 0}
        self.assert_refused(self.experiment(), 4, "no transaction committed in cornus trial 1", "20 attempts", "theta")
        self.fake = {"committed": 0, "aborted": 0}
        self.assert_refused(self.experiment("", "--resume"), 4, "lengthen duration_s")
        self.assertEqual((self.living(), os.path.exists(self.out)), ([], False))

    def test_alarms_are_violations(self):
        self.fake = {"alarm": 3}
        done = self.experiment()
        self.assertEqual(done.returncode, 1)
        self.assertIn("CONFLICT 6", done.stderr)
        self.assertIn("CONFLICT 6", self.read("report.html"))

    def test_missing_programs(self):
        os.unlink(os.path.join(self.folder, "build", "bin", "dogwood-compute"))
        self.assert_refused(self.experiment(), 3, "bin/dogwood-compute is missing", "scripts/build")
        self.assertFalse(os.path.exists(self.results))


class Launchers(FakeCluster):
    def measuring(self, launcher):
        """Waits until the nodes are at work."""
        for line in launcher.stdout:
            if "measuring" in line:
                return
        self.fail("the launcher ended early")

    def test_a_killed_launcher_leaves_no_node_and_no_result(self):
        launcher = self.start("", "-s", "duration_s=60")
        self.measuring(launcher)
        self.assertEqual(len(self.living()), 4)
        launcher.kill()
        launcher.wait()
        self.wait_until(lambda: not self.living(), "the nodes are gone")
        self.assertEqual(os.listdir(self.results), [".one.partial"])

    def test_a_launcher_asked_to_end_leaves_none_either(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            launcher = self.start("", "-s", "duration_s=60", "--resume")
            self.measuring(launcher)
            launcher.send_signal(number)
            self.assertEqual(launcher.wait(30), 128 + number)
            self.assertEqual((self.living(), os.path.exists(self.out)), ([], False))
            self.assertFalse(os.path.exists(os.path.join(self.partial, "data")))

    def test_a_second_launcher_is_refused_and_disturbs_nothing(self):
        launcher = self.start("", "-s", "duration_s=60")
        self.measuring(launcher)
        for words in ((), ("--resume",)):
            self.assert_refused(self.experiment("", *words), 3, f"process {launcher.pid}")
        self.assertEqual(len(self.living()), 4)
        self.assertIsNone(launcher.poll())

    def test_resume_keeps_what_is_done(self):
        launcher = self.start("", "-s", "trials=2", "-s", "duration_s=0.2", "--let-sleep")
        for line in launcher.stdout:
            if re.match(r"\[2/4\].*% aborted", line):
                break
        launcher.kill()
        launcher.wait()
        self.wait_until(lambda: not self.living(), "the nodes are gone")
        words = ("-s", "trials=2", "-s", "duration_s=0.2", "--let-sleep")
        self.assert_refused(self.experiment("", *words), 2, ".one.partial", "--resume")
        self.assert_refused(self.experiment("threads = 5\n", *words, "--resume"), 2, "begun otherwise", "threads = 5")
        awake = os.path.join(self.partial, "awake.json")
        with open(awake, encoding="utf-8") as file:
            slept = file.read()
        with open(awake, "w", encoding="utf-8") as file:
            json.dump({"processors_kept_awake": True, "why_processors_sleep": None}, file)
        self.assert_refused(self.experiment("", *words, "--resume"), 2, "begun otherwise", "kept awake", "without --let-sleep")
        with open(awake, "w", encoding="utf-8") as file:
            file.write(slept)
        kept = os.path.join(self.partial, "trials", "cornus-t1.json")
        with open(kept, encoding="utf-8") as file:
            run_id = json.load(file)["run_id"]
        done = self.experiment("", *words, "--resume")
        self.assert_good(done)
        self.assertNotIn("[1/4]", done.stdout)
        self.assertIn("[4/4]", done.stdout)
        self.assertEqual(len(self.rows()), 4)
        self.assertEqual(json.loads(self.read("trials", "cornus-t1.json"))["run_id"], run_id)
        self.assertFalse(json.loads(self.read("meta.json"))["processors_kept_awake"])


if __name__ == "__main__":
    unittest.main()

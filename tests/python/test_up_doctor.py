"""Does a cluster that was put up stay up, and come down whole? Does doctor see what is wrong?"""

import json
import os
import signal
import subprocess
import unittest

from run_support import DOGWOOD, FakeCluster

from dogwood_lib import doctor, state


class Up(FakeCluster):
    def setUp(self):
        super().setUp()
        self.place = os.path.join(self.folder, "up")
        self.addCleanup(self.dogwood, "down", "--dir", self.place)

    def up(self, *words):
        return self.dogwood("up", *words, "--dir", self.place)

    def test_up_status_down(self):
        done = self.dogwood("status", "--dir", self.place)
        self.assertEqual(done.returncode, 3)
        self.assertIn("no cluster is up", done.stdout)
        self.assert_good(self.up("-s", "protocol=2pc"))
        self.assertEqual(len(self.living()), 4)
        done = self.dogwood("status", "--dir", self.place)
        self.assert_good(done)
        self.assertIn("protocol 2pc", done.stdout)
        self.assertEqual(done.stdout.count("3 of 3"), 2)
        self.assert_refused(self.up(), 3, "a cluster is up", "down")
        done = self.dogwood("down", "--dir", self.place)
        self.assert_good(done)
        self.assertIn("4 nodes stopped", done.stdout)
        self.assertEqual((self.living(), os.path.exists(os.path.join(self.place, "data"))), ([], False))
        self.assertIn("no cluster is up", self.dogwood("down", "--dir", self.place).stdout)
        self.assert_good(self.up())

    def test_a_dead_node_is_told(self):
        self.assert_good(self.up())
        node = next(node for node in state.load(self.place)["nodes"] if node["name"] == "compute-1")
        os.kill(node["pid"], signal.SIGKILL)
        self.wait_until(lambda: not state.is_alive(node), "compute-1 is gone")
        done = self.dogwood("status", "--dir", self.place)
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stdout, r"compute-1 .* dead")
        self.assertIn("3 nodes stopped", self.dogwood("down", "--dir", self.place).stdout)

    def test_nodes_die_with_their_keeper(self):
        self.assert_good(self.up())
        os.kill(state.load(self.place)["keeper"]["pid"], signal.SIGKILL)
        self.wait_until(lambda: not self.living(), "the nodes are gone")
        self.assert_good(self.up())

    def test_a_process_that_got_the_id_later_is_spared(self):
        self.assert_good(self.up())
        self.assert_good(self.dogwood("down", "--dir", self.place))
        with subprocess.Popen(["/bin/sleep", "60"]) as stranger:
            found = state.load(self.place)
            found["keeper"]["pid"] = stranger.pid
            with open(os.path.join(self.place, state.FILE), "w", encoding="utf-8") as file:
                json.dump(found, file)
            self.assertIn("no cluster is up", self.dogwood("down", "--dir", self.place).stdout)
            self.assertIsNone(stranger.poll())
            stranger.kill()

    def test_an_up_that_is_killed_early_leaves_nothing(self):
        launcher = subprocess.Popen([DOGWOOD, "up", "--dir", self.place], env=self.environment(), stdout=subprocess.DEVNULL)
        self.wait_until(self.living, "a node runs")
        launcher.kill()
        launcher.wait()
        if os.path.exists(os.path.join(self.place, state.FILE)):
            self.dogwood("down", "--dir", self.place)
        self.wait_until(lambda: not self.living(), "the nodes are gone")

    def test_refusals(self):
        self.assert_refused(self.up("-s", "threads=[1, 2]"), 2, "one cluster has one threads", "-s threads=1")
        self.assert_refused(self.up("-s", "thread=1"), 2, 'did you mean "threads"?')
        self.fake = {"refuse": "no such thing"}
        self.assert_refused(self.up(), 2, "compute-0", "no such thing")
        self.assertEqual(self.living(), [])
        os.makedirs(os.path.join(self.folder, "full", "of"))
        self.assert_refused(self.dogwood("up", "--dir", os.path.join(self.folder, "full")), 2, "something else")


class Doctor(FakeCluster):
    def verdicts(self, *words):
        done = self.dogwood("doctor", "--dir", self.results, *words)
        self.assertEqual(done.stderr, "")
        lines = {line[8:].split()[0]: line for line in done.stdout.splitlines()}
        self.assertEqual(list(lines), ["python", "packages", "build", "memory", "ports", "space", "disk", "nodes", "load",
                                       "idle"])
        return done.returncode, lines

    def test_each_check_has_a_line(self):
        code, lines = self.verdicts()
        for line in lines.values():
            self.assertRegex(line, "^(ok    |not ok)  ")
        self.assertTrue(lines["build"].startswith("ok"))
        self.assertTrue(lines["ports"].startswith("ok"))
        self.assertEqual(code, 3 if any(line.startswith("not") for line in lines.values()) else 0)
        self.assertFalse(os.path.exists(self.results))

    def test_a_missing_build_names_the_mend(self):
        code, lines = self.verdicts("--build", self.folder)
        self.assertEqual(code, 3)
        self.assertRegex(lines["build"], "^not ok .* scripts/build")

    def test_strays_are_seen(self):
        place = os.path.join(self.folder, "up")
        self.addCleanup(self.dogwood, "down", "--dir", place)
        self.assert_good(self.dogwood("up", "--dir", place))
        pids = {node["pid"] for node in state.load(place)["nodes"]}
        self.assertLessEqual(pids, {pid for pid, _ in doctor.processes_named(doctor.NODE_NAMES)})
        self.assertRegex(self.verdicts()[1]["nodes"], "^not ok .*dogwood-")

    def test_verdicts_on_the_disk(self):
        for times, kind, part in (([3.0] * 100, "ext4", "nothing reaches a disk"), ([300.0] * 100, "tmpfs", "nothing reaches"),
                                  ([9000.0] * 100, "ext4", "so slow a disk")):
            with self.assertRaisesRegex(doctor.Wrong, part):
                doctor.judge_sync(times, kind)
        self.assertIn("p50 300 µs", doctor.judge_sync([300.0] * 100, "ext4"))


if __name__ == "__main__":
    unittest.main()

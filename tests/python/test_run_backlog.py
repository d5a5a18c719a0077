"""Does `dogwood run` own up to what its figures leave out: what an open loop offered and no worker took, and what had not
ended when the nodes gave up?"""

import json
import unittest

from run_support import FakeCluster

from dogwood_lib import summary

OPEN = 'protocol = "cornus"\nloop = "open"\nrate_tps = 300\n'
KEPT_UP = {"offered": 1000, "carried": 0, "waiting": 10, "waiting_us": 900}
OVERLOADED = {"offered": 1500, "carried": 100, "waiting": 400, "waiting_us": 90000}


class Backlog(FakeCluster):
    def test_an_overloaded_open_loop_does_not_look_fine(self):
        self.fake = {"open": OVERLOADED}
        done = self.experiment(OPEN)
        self.assert_good(done)
        self.assertIn("WARNING: overloaded: 800 of 3,200 transactions that were due still waited", done.stdout)
        self.assertIn("the first of them for 90 ms", done.stdout)
        self.assertIn("1 of 1 trials were overloaded", done.stdout)
        self.assertIn("1 of 1 trials were overloaded", self.read("report.html"))
        self.assertIn("<td class=n>800</td>", self.read("report.html"))
        self.assertEqual(json.loads(self.read("meta.json"))["overloaded"], ["cornus-t1"])
        row = self.rows()[0]
        self.assertEqual([row[name] for name in ("offered", "waiting", "waiting_max_us", "unfinished", "undrained")],
                         ["3000", "800", "90000.0", "8", "0"])

    def test_one_that_keeps_up_is_left_in_peace(self):
        self.fake = {"open": KEPT_UP}
        done = self.experiment(OPEN)
        self.assert_good(done)
        self.assertNotIn("overloaded", done.stdout + self.read("report.html"))
        self.assertEqual(json.loads(self.read("meta.json"))["overloaded"], [])
        self.assertEqual(self.rows()[0]["waiting"], "20")

    def test_a_closed_loop_offers_nothing(self):
        done = self.experiment('protocol = "cornus"\n')
        self.assert_good(done)
        self.assertNotIn("WARNING", done.stdout)
        row = self.rows()[0]
        self.assertEqual([row[name] for name in ("offered", "waiting", "waiting_max_us", "unfinished", "undrained")],
                         ["", "", "", "8", "0"])
        self.assertEqual([row[name] for name in ("dist_wait_us", "writers_per_dist", "readers_per_dist")],
                         ["50.0", "1.0000", "0.0000"])

    def test_what_did_not_end_is_told(self):
        self.fake = {"undrained": 3}
        done = self.experiment('protocol = "cornus"\n')
        self.assert_good(done)
        self.assertIn("WARNING: 3 transactions had not ended", done.stdout)
        self.assertEqual(self.rows()[0]["undrained"], "3")

    def test_old_results_have_no_such_columns(self):
        self.fake = {"open": KEPT_UP}
        self.assert_good(self.experiment(OPEN))
        kept = summary.COLUMNS[:summary.COLUMNS.index("model_dist_mean_us") + 1]
        row = self.rows()[0]
        with open(f"{self.out}/summary.csv", "w", encoding="utf-8") as file:
            file.write(",".join(kept) + "\n" + ",".join(row[name] for name in kept) + "\n")
        meta = json.loads(self.read("meta.json"))
        del meta["overloaded"]
        with open(f"{self.out}/meta.json", "w", encoding="utf-8") as file:
            json.dump(meta, file)
        self.assert_good(self.dogwood("report", self.out))


class Limits(unittest.TestCase):
    def of(self, *waiting, carried=0):
        return [{"offered": 1000, "carried": carried, "waiting": one, "waiting_us": one} for one in waiting]

    def test_one_in_a_hundred_may_wait(self):
        self.assertFalse(summary.is_overloaded(self.of(20, 0)))
        self.assertTrue(summary.is_overloaded(self.of(21, 0)))
        self.assertFalse(summary.is_overloaded(self.of(21, 0, carried=100)))
        self.assertFalse(summary.is_overloaded([{"unfinished": 4}]))

    def test_the_longest_wait_is_that_of_any_node(self):
        self.assertEqual(summary.backlog_figures(self.of(3, 9, 0))["waiting_max_us"], 9)
        self.assertIsNone(summary.backlog_figures(self.of(0, 0))["waiting_max_us"])


if __name__ == "__main__":
    unittest.main()

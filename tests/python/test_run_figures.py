"""Are figures computed and shown right from nodes whose figures are known: a fixed 7 ms must read 7 ms in the table, the
histogram, the plot and the page? Are percentiles read by the rules of the C histogram?"""

import json
import os
import re
import unittest

from run_support import FakeCluster

from dogwood_lib import analysis, experiment, model, story, summary
from dogwood_lib.latencies import Latencies, high_us, rank_of

FLOORS = {"round_trip_us": 100.0, "log_append_us": {"sync": 200.0}}


def bucket_low_us(us):
    """The lower edge of a value's bucket, the long way."""
    ns = round(us * 1000)
    low = 1
    while low * 2 <= ns:
        low *= 2
    return (low + (ns - low) * 64 // low * low / 64) / 1000


def of(values, **more):
    return Latencies([[bucket_low_us(value), 1] for value in values], max(values), **more)


class Readings(unittest.TestCase):
    def test_one_value_reads_itself(self):
        for value in (1, 1.5, 63, 500, 7000, 123456.789, 2e8):
            for percent in (0, 50, 99.9, 100):
                self.assertEqual(of([value] * 3).percentile_us(percent), value)

    def test_readings_never_flatter_and_err_by_less_than_a_64th(self):
        values = [1.0 * 1.07 ** i for i in range(280)]
        times = of(values)
        for percent in (1, 10, 50, 90, 99, 99.9):
            true = values[rank_of(len(values), percent) - 1]
            self.assertLessEqual(true, times.percentile_us(percent) + 1e-3)
            self.assertLess(times.percentile_us(percent), true * (1 + 1 / 64))

    def test_ranks(self):
        self.assertEqual([rank_of(*one) for one in ((1000, 99.9), (1000, 0), (1, 50), (3, 50), (10**12, 99.9999))],
                         [999, 1, 1, 2, 999999000000])

    def test_what_was_clamped_reads_as_a_bound(self):
        times = Latencies([[1.0, 4], [bucket_low_us(2e8), 2]], 9e8, clamped_low=3, clamped_high=2)
        self.assertEqual(times.percentile_us(50), 0.999)
        self.assertEqual(times.percentile_us(60), high_us(1.0))
        self.assertEqual(times.percentile_us(100), 9e8)

    def test_nodes_merge_to_what_one_node_would_have_counted(self):
        left, right = [10.0, 20, 7000], [20.0, 21, 90000]
        both = of(left) + of(right)
        self.assertEqual((both.buckets, both.max_us), (of(left + right).buckets, 90000))
        self.assertIsNone(Latencies().percentile_us(50))

    def test_hgrm(self):
        text = (of([1000.0] * 9 + [7000.0])).hgrm()
        self.assertRegex(text, r"(?m)^ +1\.0\d\d 0\.900000000000 +9 +10\.00$")
        self.assertRegex(text, r"(?m)^ +7\.000 1\.000000000000 +10$")
        self.assertRegex(text, r"#\[Max     = +7\.000, Total count    = +10\]")


class Model(unittest.TestCase):
    def point(self, **more):
        return {"protocol": "cornus", "log_delay_ms": 4, "sync": True, **more}

    def test_one_log_write_or_two(self):
        self.assertEqual(model.model_us(self.point(), 600, FLOORS), 600 + 100 + 4000 + 100 + 200)
        self.assertEqual(model.model_us(self.point(protocol="2pc"), 600, FLOORS), 600 + 100 + 2 * 4300)

    def test_without_a_floor_there_is_none(self):
        self.assertIsNone(model.model_us(self.point(sync=False), 600, FLOORS))
        self.assertIsNone(model.model_us(self.point(), None, FLOORS))
        self.assertIsNone(model.model_us(self.point(), 600, None))

    def test_floors_are_means_over_rounds(self):
        rounds = [{**FLOORS, "writers": 2}, {"round_trip_us": 300.0, "log_append_us": {"sync": 400.0}, "writers": 2}]
        self.assertEqual(model.combine(rounds), {"round_trip_us": 200.0, "log_append_us": {"sync": 300.0}, "writers": 2})
        self.assertIsNone(model.combine([]))


class Estimates(unittest.TestCase):
    def test_confidence(self):
        found = analysis.estimate([1.0, 2.0, 3.0])
        self.assertEqual(found.mean, 2.0)
        self.assertAlmostEqual(found.half, 4.303 / 3**0.5)
        self.assertEqual(analysis.estimate([5.0, None]), analysis.Estimate(5.0))
        self.assertIsNone(analysis.estimate([None]))


class Seven(FakeCluster):
    """Every distributed transaction takes 7 ms."""

    def test_7_ms_reads_7_ms_everywhere(self):
        self.fake = {"latency_us": {"cornus": 7000, "2pc": 7000}}
        done = self.experiment("log_delay_ms = [0, 4]\n", "-s", "trials=2", figures=True)
        self.assert_good(done)
        for row in self.rows():
            for name in ("mean", "p50", "p90", "p99", "p999", "max", "occupancy"):
                self.assertEqual(row[f"dist_{name}_us"], "7000.0", name)
            parts = sum(float(row[f"dist_{part}_us"]) for part in ("execution", "prepare", "commit", "abort"))
            self.assertEqual((parts, row["dist_release_us"]), (7000, "7200.0"))
        self.assertEqual(self.read("hist", "2pc-log_delay_ms-4-t2-dist.csv"), "bucket_low_us,count\n6946.816,2000\n")
        self.assertIn("7.000 1.000000000000", self.read("hist", "2pc-log_delay_ms-4-t2-dist.hgrm"))
        lines = self.read("figures", "latency.csv").splitlines()
        self.assertEqual(lines[0], "protocol,log_delay_ms,mean_ms,mean_ci95_ms,p99_ms,p99_ci95_ms,model_ms")
        self.assertEqual(lines[1], "cornus,0,7,0,7,0,1")
        self.assertEqual(lines[4], "2pc,4,7,0,7,0,9.3")
        self.assertEqual(self.read("figures", "breakdown.csv").splitlines()[1], "cornus,0,0.6,6.4,0,0")
        self.assertEqual(re.findall(r">(7)<", self.read("figures", "breakdown.svg"))[:4], ["7"] * 4)
        self.assertIn("Cornus is not faster here", done.stdout)
        page = self.read("report.html")
        self.assertIn("7 ms with Cornus, 7 ms with two-phase commit", page)
        self.assertGreaterEqual(page.count("<td class=n>7 ms ± 0 µs</td>"), 4)

    def test_the_other_columns(self):
        self.fake = {"local": 3000}
        self.assert_good(self.experiment("log_delay_ms = 4\n"))
        cornus, two_phase = self.rows()
        expected = {"workload": "ycsb", "threads": "4", "log_delay_ms": "4", "log_delay_dist": "constant", "loop": "closed",
                    "rate_tps": "", "sync": "true", "batch_accesses": "true", "theta": "0", "seed": "1", "trial": "1",
                    "duration_s": "0.1", "committed": "8000", "aborted": "20", "unknown": "0", "throughput_tps": "80000.0",
                    "abort_pct": "0.2494", "dist_committed": "2000", "dist_mean_us": "5000.0", "local_committed": "6000",
                    "local_mean_us": "500.0", "local_p50_us": "500.0", "local_p99_us": "500.0",
                    "log_writes_per_dist": "4.0000", "forced_log_writes_per_dist": "2.0000",
                    "messages_per_dist": "3.0000", "log_bytes_per_dist": "900.0000", "cpu_us_per_txn": "100.0",
                    "model_dist_mean_us": "5000.0"}
        self.assertEqual({name: cornus[name] for name in expected}, expected)
        self.assertEqual((two_phase["dist_mean_us"], two_phase["forced_log_writes_per_dist"]), ("9300.0", "3.0000"))
        self.assertTrue(os.path.exists(os.path.join(self.out, "hist", "cornus-t1-local.csv")))

    def test_what_does_not_apply_is_empty(self):
        self.fake = {"committed": 0, "local": 100}
        self.assert_good(self.experiment('protocol = "cornus"\n', figures=True))
        row = self.rows()[0]
        for name in ("dist_mean_us", "dist_p99_us", "dist_max_us", "dist_execution_us", "model_dist_mean_us"):
            self.assertEqual(row[name], "", name)
        self.assertEqual((row["dist_committed"], row["local_committed"]), ("0", "200"))
        self.assertEqual(sorted(os.listdir(os.path.join(self.out, "figures"))),
                         [f"{name}.{kind}" for name in ("latency", "throughput") for kind in ("csv", "png", "svg")])


class Pages(FakeCluster):
    def test_the_story_is_told(self):
        done = self.experiment("log_delay_ms = [0, 32]\n", figures=True)
        self.assert_good(done)
        sentence = "A distributed transaction took 33 ms with Cornus, 65.3 ms with two-phase commit at a log delay of 32 ms: " \
                   "1.98 times as long."
        page = self.read("report.html")
        for text in (done.stdout, page):
            self.assertIn(sentence, text)
        for part in ("What was run", "How to run it again", "The floors of this run", "Where it ran", "Every trial",
                     "the paper's rule", "log_delay_ms = [0, 32]"):
            self.assertIn(part, page)
        self.assertEqual(page.count("src='data:image/svg+xml;base64,"), 3)
        self.assertEqual(re.findall(r"""(?:src|href)=(?!'data:)""", page), [])
        self.assertNotIn("@import", page)

    def test_plot_and_report_make_the_same_again(self):
        self.assert_good(self.experiment("log_delay_ms = [0, 4]\n", figures=True))
        before = {name: self.read(*name) for name in (("figures", "latency.svg"), ("figures", "throughput.csv"),
                                                       ("report.html",))}
        for word in ("plot", "report"):
            self.assert_good(self.dogwood(word, self.out))
        self.assertEqual({name: self.read(*name) for name in before}, before)

    def test_several_sweeps_have_figures_each(self):
        self.assert_good(self.experiment("log_delay_ms = [0, 4, 8]\nsync = [true, false]\n", figures=True))
        names = os.listdir(os.path.join(self.out, "figures"))
        for value in ("true", "false"):
            self.assertIn(f"latency-sync-{value}.svg", names)
        results = analysis.Results(self.out)
        self.assertEqual((results.x_key, results.facets), ("log_delay_ms", [{"sync": True}, {"sync": False}]))
        self.assertEqual(self.read("report.html").count("<figure>"), 6)

    def test_keys_without_a_column_can_be_swept(self):
        self.assert_good(self.experiment("[ycsb]\nrecords = [100, 200]\n", figures=True))
        self.assertEqual(self.read("sweep.csv"), "row,ycsb.records\n1,100\n2,100\n3,200\n4,200\n")
        results = analysis.Results(self.out)
        self.assertEqual((results.x_key, results.x_values({})), ("ycsb.records", [100, 200]))

    def test_words_and_single_points_are_bars(self):
        self.assert_good(self.experiment('log_delay_dist = ["constant", "uniform"]\nlog_delay_ms = 4\n', figures=True))
        results = analysis.Results(self.out)
        self.assertEqual((results.x_key, results.x_is_number()), ("log_delay_dist", False))
        self.assertIn("uniform", self.read("figures", "latency.svg"))

    def test_disturbed_trials_are_owned_up_to(self):
        self.assert_good(self.experiment())
        meta = json.loads(self.read("meta.json"))
        for share, told in ((0.05, False), (0.43, True)):
            meta["others_cpu_share"]["2pc-t1"] = share
            meta["others_cpu_share"]["cornus-t1"] = 0.0
            with open(os.path.join(self.out, "meta.json"), "w", encoding="utf-8") as file:
                json.dump(meta, file)
            self.assert_good(self.dogwood("report", self.out))
            self.assertEqual("1 of 2 trials were disturbed: other processes had up to 43 %" in self.read("report.html"), told)

    def test_no_results_folder(self):
        for word in ("plot", "report"):
            self.assert_refused(self.dogwood(word, self.folder), 2, self.folder, "no results folder")

    def test_the_best_trial_is_marked(self):
        self.assert_good(self.experiment("", "-s", "trials=3"))
        self.assertEqual(self.read("report.html").count("<td class=n>best</td>"), 2)


class Ratios(FakeCluster):
    def test_ratios_are_made_trial_by_trial(self):
        """The machine is twice as slow in trial 2: each ratio stays 2."""
        self.assert_good(self.experiment("", "-s", "trials=2"))
        path = os.path.join(self.out, "summary.csv")
        times = {("cornus", "1"): 1000, ("2pc", "1"): 2000, ("cornus", "2"): 2000, ("2pc", "2"): 4000}
        rows = self.rows()
        with open(path, "w", encoding="utf-8") as file:
            file.write(",".join(summary.COLUMNS) + "\n")
            for row in rows:
                row["dist_mean_us"] = str(times[row["protocol"], row["trial"]])
                file.write(",".join(row[name] for name in summary.COLUMNS) + "\n")
        results = analysis.Results(self.out)
        self.assertEqual(results.ratio({}, None), analysis.Estimate(2.0, 0.0, 2))
        self.assertIn("2.00 times as long", story.headline(results, {}))


class Plans(FakeCluster):
    def test_every_key_is_told_by_a_column_or_by_sweep_csv(self):
        columns = {summary.column_of(key) for key in experiment.KEYS} - {None}
        self.assertEqual(columns | {"trial"}, set(summary.COLUMNS[:summary.FIRST_FIGURE]))


if __name__ == "__main__":
    unittest.main()

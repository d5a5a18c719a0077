"""Are the figures of `dogwood bench log` computed, judged and shown right from samples that are known, and does a real,
short run come to its end with all its files?"""

import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts"))

from dogwood_lib import histograms, table  # noqa: E402
from dogwood_lib.bench_log_report import (Samples, burst_table, entries_rows, entries_table, rows_of,  # noqa: E402
                                          table_of, verdict_lines, verdicts_of)
from dogwood_lib.bench_log import busy_line  # noqa: E402
from dogwood_lib.machine import Awake, Others, awake_line, file_system  # noqa: E402

DOGWOOD = os.path.join(ROOT, "scripts", "dogwood")


def sample(series, depth, per_s, p50_us, store=None, sync=None, number=1):
    return {"series": series, "store": store, "sync": sync, "depth": depth, "round": number, "per_s": per_s,
            "p50_us": p50_us, "p99_us": 2 * p50_us, "batch": depth / 2}


def one_depth(depth, node, writer, exchange_us=100.0, disk_us=200.0, p50_us=300.0, number=1):
    """All series of a synced RocksDB at one depth."""
    return [sample("node", depth, node, p50_us, "rocksdb", "on", number),
            sample("writer", depth, writer, 1.0, "rocksdb", "on", number),
            sample("exchange", depth, 1.0, exchange_us, number=number),
            sample("fdatasync", depth, 1.0, disk_us, number=number)]


def times(p50_us, p99_us=None, count=10):
    return {"count": count, "p50_us": p50_us, "p99_us": p99_us or p50_us, "max_us": p99_us or p50_us}


def burst_of(last_us, reads_us=150.0, stats_us=900.0):
    return {"burst": 100, "delay_ms": 32.0, "first": times(32100.0), "last": times(33000.0, last_us),
            "reads": {"quiet": times(140.0), "burst": times(150.0, reads_us)},
            "stats": {"quiet": times(800.0), "burst": times(900.0, stats_us)}}


class Numbers(unittest.TestCase):
    def test_times(self):
        for microseconds, text in ((7000, "7 ms"), (0.25, "0.25 µs"), (213.6, "214 µs"), (999.4, "999 µs"),
                                   (999.6, "1 ms"), (1416.5, "1.42 ms"), (32e3, "32 ms"), (2.5e6, "2.5 s"),
                                   (3.6e9, "3600 s"), (None, "")):
            self.assertEqual(table.format_us(microseconds), text)

    def test_ratios_and_rates(self):
        self.assertEqual([table.format_ratio(ratio) for ratio in (None, 1.499, 0.6, 0.0021)], ["", "1.50", "0.60", "0.002"])
        self.assertEqual([table.format_rate(rate) for rate in (None, 0.0, 123456.7)], ["", "0", "123,457"])

    def test_table(self):
        self.assertEqual(table.render(["what", "n"], [["a", "1,000"], ["long", ""], ["b", "7"]]),
                         "what      n\n----  -----\na     1,000\nlong\nb         7")

    def test_histograms_merge_by_adding(self):
        merged = histograms.merge([[1.0, 1], [3.0, 2]], [(3.0, 1), (2.0, 4)])
        self.assertEqual(merged, [(1.0, 1), (2.0, 4), (3.0, 3)])
        self.assertEqual(histograms.cumulative(merged), [(1.0, 0.125), (2.0, 0.625), (3.0, 1.0)])


class Report(unittest.TestCase):
    def cells(self, text, row):
        return re.split(r"  +", text.splitlines()[row + 2])

    def test_a_fixed_7_ms_reads_7_ms(self):
        samples = [entry for number in (1, 2, 3) for entry in one_depth(4, 1000.0, 2000.0, p50_us=7000.0, number=number)]
        text = table_of(rows_of(Samples(samples)))
        self.assertEqual(self.cells(text, 0), ["rocksdb, synced", "4", "1,000", "7 ms", "14 ms", "2.0", "2,000", "0.50",
                                               "200 µs", "100 µs", "23.33"])

    def test_medians_over_rounds_and_ratios_within_them(self):
        # The machine is ten times slower in round 2: each ratio stays 0.5, though that of the medians is 0.3.
        samples = one_depth(1, 300.0, 600.0, number=1) + one_depth(1, 50.0, 100.0, number=2) + \
            one_depth(1, 500.0, 1000.0, number=3)
        row, = rows_of(Samples(samples))
        self.assertEqual((row["per_s"], row["writer_per_s"], row["writer_ratio"]), (300.0, 600.0, 0.5))
        self.assertEqual((row["per_s_low"], row["per_s_high"], row["rounds"]), (50.0, 500.0, 3))

    def test_without_sync_the_floor_is_the_exchange_alone(self):
        samples = [sample("node", 1, 10.0, 150.0, "memory", "off"), sample("exchange", 1, 1.0, 100.0),
                   sample("fdatasync", 1, 1.0, 200.0)]
        row, = rows_of(Samples(samples))
        self.assertEqual((row["floor_ratio"], row["fdatasync_us"], row["writer_ratio"]), (1.5, None, None))
        self.assertIn("memory", table_of([row]))

    def test_rows_come_by_configuration_and_depth(self):
        samples = [sample("node", depth, 1.0, 1.0, store, "off") for store in ("rocksdb", "memory")
                   for depth in (64, 1)]
        self.assertEqual([(row["store"], row["depth"]) for row in rows_of(Samples(samples))],
                         [("rocksdb", 1), ("rocksdb", 64), ("memory", 1), ("memory", 64)])

    def test_entries(self):
        entries = [{"entries": count, "round": number, "per_s": rate}
                   for count, number, rate in ((10, 1, 100.0), (1000, 1, 90.0), (10, 2, 10.0), (1000, 2, 9.0))]
        rows = entries_rows(entries)
        self.assertEqual([(row["entries"], round(row["ratio"], 6)) for row in rows], [(10, 1.0), (1000, 0.9)])
        self.assertIn("1,000", entries_table(rows))
        self.assertEqual(entries_rows([]), [])

    def test_burst_table_leaves_empty_what_was_not_seen(self):
        burst = burst_of(33500.0)
        burst["stats"]["burst"] = {**times(0.0), "count": 0}
        text = burst_table(burst)
        self.assertEqual(self.cells(text, 1), ["last answer", "10", "33 ms", "33.5 ms", "33.5 ms"])
        self.assertEqual(self.cells(text, 5), ["unary Stats, in a burst", "0"])


class Verdicts(unittest.TestCase):
    def judge(self, samples=(), burst=None, entries=()):
        verdicts = verdicts_of(rows_of(Samples(samples)), burst, list(entries))
        return [each["reached"] for each in verdicts], verdict_lines(verdicts)

    def test_nothing_measured(self):
        reached, text = self.judge()
        self.assertEqual(set(reached), {None})
        self.assertEqual(text.count("not measured"), len(reached))

    def test_the_edges_count_as_reached(self):
        samples = one_depth(64, 100_000.0, 100_000 / 0.6) + one_depth(1, 60.0, 100.0, p50_us=450.0)
        entries = [{"entries": 10, "per_s": 100.0, "ratio": 1.0}, {"entries": 99, "per_s": 85.0, "ratio": 0.85}]
        reached, _ = self.judge(samples, burst_of(40000.0, 7999.0, 7999.0), entries)
        self.assertEqual(reached, [True] * 7)

    def test_just_beyond_the_edges(self):
        samples = one_depth(64, 99_999.0, 170_000.0) + one_depth(1, 60.0, 100.0, p50_us=451.0)
        entries = [{"entries": 10, "per_s": 100.0, "ratio": 1.0}, {"entries": 99, "per_s": 84.0, "ratio": 0.84}]
        reached, text = self.judge(samples, burst_of(40001.0, 8001.0, 8001.0), entries)
        self.assertEqual(reached, [False] * 7)
        self.assertEqual(text.count("not reached"), 7)
        self.assertIn("99,999 votes/s", text)

    def test_nothing_is_judged_on_a_busy_machine(self):
        rows = rows_of(Samples(one_depth(64, 200_000.0, 200_000.0)))
        verdicts = verdicts_of(rows, None, [], quiet=False)
        self.assertEqual({each["reached"] for each in verdicts}, {None})
        text = verdict_lines(verdicts)
        self.assertEqual((text.count("not judged"), text.count("not measured")), (2, 3))
        self.assertIn("200,000 votes/s", text)

    def test_only_the_synced_store_is_judged(self):
        samples = [sample("node", 64, 1e9, 1.0, "rocksdb", "off"), sample("node", 64, 1e9, 1.0, "memory", "off")]
        self.assertIsNone(self.judge(samples)[0][0])

    def test_the_writer_is_judged_at_64_and_its_batches_are_told(self):
        reached, text = self.judge(one_depth(1, 30.0, 100.0) + one_depth(64, 59.0, 100.0) + one_depth(256, 90.0, 100.0))
        self.assertFalse(reached[1])
        self.assertIn("0.59 of 100 records/s with batches of 32", text)


class Machine(unittest.TestCase):
    def test_file_system(self):
        self.assertEqual(file_system("/proc/self")["type"], "proc")
        self.assertTrue(file_system(tempfile.gettempdir())["type"])

    def test_awake_asks_for_no_latency_as_long_as_it_is_held(self):
        with tempfile.NamedTemporaryFile() as file:
            with Awake(path=file.name) as awake:
                self.assertTrue(awake.kept)
                self.assertEqual(awake_line(awake.facts()), "idle processors were kept awake")
                self.assertEqual(file.read(), bytes(4))
            self.assertFalse(awake.kept)

    def test_awake_tells_why_not(self):
        for awake, why in ((Awake(wanted=False), "(asked for)"),
                           (Awake(path="/nowhere/at/all"), "(/nowhere/at/all: No such file or directory)")):
            with awake:
                self.assertFalse(awake.kept)
                self.assertEqual(awake_line(awake.facts()), "idle processors slept, which lengthens each exchange " + why)

    def test_others(self):
        others = Others()
        self.assertTrue(0 <= others.share() <= 1)
        self.assertIn("TOO MUCH", busy_line(0.11))
        self.assertNotIn("TOO MUCH", busy_line(0.1))


class Smoke(unittest.TestCase):
    """Real nodes, real floors."""

    def test_quick_run(self):
        with tempfile.TemporaryDirectory() as parent:
            out = os.path.join(parent, "run")
            done = subprocess.run([DOGWOOD, "bench", "log", "--quick", "--out", out, "--bytes", "64", "--delay", "5"],
                                  capture_output=True, text=True, timeout=240)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(os.listdir(parent), ["run"])
            self.check_files(out)
            self.check_counts(out)
            self.assertIn("appends at 5 ms injected delay", done.stdout)
            again = subprocess.run([DOGWOOD, "bench", "log", "--quick", "--out", out], capture_output=True, text=True,
                                   timeout=60)
            self.assertEqual(again.returncode, 2)
            self.assertIn("exists", again.stderr)

    def check_files(self, out):
        files = {os.path.relpath(os.path.join(folder, name), out)
                 for folder, _, names in os.walk(out) for name in names}
        wanted = {"config.toml", "meta.json", "bench.json", "samples.csv", "summary.csv", "report.txt"}
        wanted |= {f"figures/{name}.{kind}" for name in ("throughput", "latency", "burst") for kind in ("png", "svg")}
        wanted |= {f"hist/{name}-{depth}.csv" for name in ("rocksdb-on", "memory-off") for depth in (1, 16)}
        self.assertEqual(wanted - files, set())
        self.assertEqual({path for path in files if not path.startswith("logs/")} - wanted, set())
        with open(os.path.join(out, "meta.json"), encoding="utf-8") as file:
            meta = json.load(file)
        self.assertEqual(meta["cores"], os.cpu_count())
        self.assertTrue(0 <= meta["others_cpu_share"] <= 1)
        for key in ("version", "kernel", "cpu", "memory_mib", "rocksdb", "file_system", "hosts", "floors", "compiler"):
            self.assertTrue(meta[key], key)

    def check_counts(self, out):
        with open(os.path.join(out, "bench.json"), encoding="utf-8") as file:
            bench = json.load(file)
        keys = [(each["series"], each["store"], each["depth"]) for each in bench["samples"]]
        self.assertEqual(len(set(keys)), len(keys))
        self.assertEqual({key[0] for key in keys}, {"node", "writer", "exchange", "fdatasync"})
        for each in bench["samples"]:
            self.assertGreater(each["per_s"], 0, each)
            if each["series"] == "node":
                self.assertEqual(each["answers"], {"VOTE_YES": each["count"]})
                self.assertEqual(each["streams"], min(2, each["depth"]))
                self.assertTrue(1 <= each["batch"] <= each["depth"], each)
                self.check_histogram(out, each)
        self.assertEqual(bench["burst"]["answers"], {"VOTE_YES": 300})
        self.assertEqual(bench["burst"]["last"]["count"], 3)
        # Delayed they were, at least.
        self.assertGreaterEqual(bench["burst"]["first"]["p50_us"], 5000)
        self.assertEqual(len(bench["entries"]), 2)

    def check_histogram(self, out, node):
        path = os.path.join(out, "hist", f"{node['store']}-{node['sync']}-{node['depth']}.csv")
        with open(path, encoding="ascii", newline="") as file:
            self.assertEqual(sum(int(row["count"]) for row in csv.DictReader(file)), node["count"])


if __name__ == "__main__":
    unittest.main()

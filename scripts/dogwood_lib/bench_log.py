"""Measures the log of a storage node: closed loops over a real connection, beside what the disk, the transport and one
in-process writer do alone, all interleaved in one run. Prints a table and which targets are reached, and writes
figures, samples and histograms to the results folder."""

import os
import shutil
import sys
import tempfile
import time

from dogwood_lib import arguments, bench_log_figures, machine
from dogwood_lib.bench_log_measure import PROGRAMS, Bench, Plan
from dogwood_lib.bench_log_report import (COLUMNS, SAMPLE_COLUMNS, Samples, burst_table, entries_rows, entries_table,
                                          rows_of, table_of, verdict_lines, verdicts_of)
from dogwood_lib.errors import AskedWrongly
from dogwood_lib.histograms import merge
from dogwood_lib.programs import ROOT, build_dir, find_program
from dogwood_lib.results import ResultsFolder

# What applies where no flag is given, with and without --quick.
FULL = {"depths": [1, 4, 16, 64, 256], "streams": 2, "rounds": 5, "seconds": 1.0, "stores": ["rocksdb", "memory"],
        "sync": ["on", "off"], "burst_rounds": 50, "entries": [10_000, 10_000_000], "entries_rounds": 15}
QUICK = {"depths": [1, 16], "streams": 2, "rounds": 1, "seconds": 0.05, "stores": ["rocksdb", "memory"], "sync": ["on"],
         "burst_rounds": 3, "entries": [1_000, 5_000], "entries_rounds": 1}

MAX_OTHERS_SHARE = 0.1
MAX_IN_FLIGHT = 4096  # the most that the in-process writer takes as one batch


def add_arguments(parser):
    whole = arguments.number
    parser.add_argument("--out", metavar="DIR", help="results folder; default results/bench-log-TIME")
    parser.add_argument("--data", metavar="DIR", help="where nodes keep their data: the disk under test; default in "
                                                      "the results folder")
    parser.add_argument("--build", metavar="DIR", help="build folder; default $DW_BUILD_DIR or build/")
    parser.add_argument("--quick", action="store_true", help="a few seconds, to see that all works; figures mean little")
    parser.add_argument("--seconds", type=arguments.number(0.05, 600), metavar="S", help="of each measurement; default 1")
    parser.add_argument("--rounds", type=whole(1, 1000, int), metavar="N", help="of everything; default 5")
    parser.add_argument("--depths", type=arguments.list_of(whole(1, MAX_IN_FLIGHT, int)), metavar="N,N",
                        help="requests in flight; default 1,4,16,64,256")
    parser.add_argument("--streams", type=whole(1, 64, int), metavar="N",
                        help="over which they are spread, one for each compute node; default 2")
    parser.add_argument("--stores", type=arguments.list_of(arguments.one_of("rocksdb", "memory")), metavar="NAME,NAME",
                        help="rocksdb, memory; default both")
    parser.add_argument("--sync", type=arguments.list_of(arguments.one_of("on", "off")), metavar="on,off",
                        help="of rocksdb; default both")
    parser.add_argument("--bytes", type=whole(0, 65536, int), default=128, metavar="N",
                        help="of redo in a vote; default 128")
    parser.add_argument("--burst", type=whole(0, 16384, int), default=100, metavar="N",
                        help="appends sent at once; default 100, 0: leave it out")
    parser.add_argument("--delay", type=arguments.number(0, 60000), default=32.0, metavar="MS",
                        help="injected while the burst is measured; default 32")
    parser.add_argument("--entries", type=arguments.list_of(whole(1, 10**9, int)), metavar="N,N",
                        help="entries in the log that votes are compared at; default 10000,10000000")
    parser.add_argument("--no-entries", action="store_true", help="leave that comparison out")
    machine.add_awake_argument(parser)
    parser.add_argument("--no-figures", action="store_true", help="draw nothing; needs no matplotlib")


def plan_of(given):
    """The Plan that the flags ask for."""
    preset = QUICK if given.quick else FULL

    def choose(name):
        value = getattr(given, name)
        return preset[name] if value is None else value

    entries = [] if given.no_entries else choose("entries")
    if len(entries) == 1:
        raise AskedWrongly("--entries compares numbers of entries; give at least two, or --no-entries")
    return Plan(depths=choose("depths"), streams=choose("streams"), rounds=choose("rounds"),
                seconds=choose("seconds"), bytes=given.bytes,
                stores=choose("stores"), syncs=choose("sync"), burst=given.burst, burst_rounds=preset["burst_rounds"],
                delay_ms=given.delay, entries=entries, entries_rounds=preset["entries_rounds"])


class Progress:
    """One line on stderr that is written over, or on a pipe one line for each step."""

    def __init__(self, stream):
        self.stream = stream
        self.terminal = stream.isatty()
        self.begin = time.monotonic()

    def __call__(self, text):
        seconds = time.monotonic() - self.begin
        start, end = ("\r\033[K", "") if self.terminal else ("", "\n")
        print(f"{start}{seconds:5.0f} s  {text.rstrip(': ')}", end=end, file=self.stream, flush=True)

    def close(self):
        if self.terminal:
            print("\r\033[K", end="", file=self.stream, flush=True)


def effective(plan, given):
    """What config.toml says."""
    return {"command": "bench log", "depths": plan.depths, "streams": plan.streams, "rounds": plan.rounds,
            "seconds": plan.seconds,
            "bytes": plan.bytes, "stores": plan.stores, "sync": plan.syncs, "burst": plan.burst,
            "burst_rounds": plan.burst_rounds, "delay_ms": plan.delay_ms, "entries": plan.entries,
            "entries_rounds": plan.entries_rounds, "data": given.data, "quick": given.quick}


def floors_of(rows):
    """The floors, for meta.json: p50 in microseconds by depth."""
    return {"exchange_p50_us": {row["depth"]: row["exchange_us"] for row in rows},
            "fdatasync_p50_us": {row["depth"]: row["fdatasync_us"] for row in rows if row["fdatasync_us"] is not None}}


def write_histograms(folder, measured):
    """Each configuration's and depth's latencies, all rounds together; buckets do not stay in the samples."""
    merged = {}
    for sample in measured.samples:
        if "buckets" in sample:
            key = (sample["store"], sample["sync"], sample["depth"])
            merged[key] = merge(merged.get(key, []), sample.pop("buckets"))
    for (store, sync, depth), histogram in merged.items():
        folder.write_csv(f"hist/{store}-{sync}-{depth}.csv", ["bucket_low_us", "count"],
                         [{"bucket_low_us": low, "count": count} for low, count in histogram])


def busy_line(share):
    """Tells what others had of the machine, and when that spoils the figures."""
    line = f"other processes had {share * 100:.0f} % of the processor time"
    return f"{line}: TOO MUCH, measure again on a quiet machine" if share > MAX_OTHERS_SHARE else line


def write_report(folder, plan, measured, facts):
    """Writes all files and returns the text for people."""
    write_histograms(folder, measured)
    samples = Samples(measured.samples)
    rows = rows_of(samples)
    entries = entries_rows(measured.entries)
    verdicts = verdicts_of(rows, measured.burst, entries, facts["others_cpu_share"] <= MAX_OTHERS_SHARE)
    folder.write_csv("samples.csv", SAMPLE_COLUMNS, measured.samples)
    folder.write_csv("summary.csv", COLUMNS, rows)
    folder.write_json("bench.json", {"summary": rows, "entries": entries, "burst": measured.burst,
                                     "verdicts": verdicts, "samples": measured.samples,
                                     "entries_samples": measured.entries})
    facts = {**facts, "sync": plan.syncs, "floors": floors_of(rows)}
    folder.write_json("meta.json", facts)
    parts = [machine.describe(facts) + "\n" + busy_line(facts["others_cpu_share"]), table_of(rows)]
    parts += [burst_table(measured.burst)] if measured.burst else []
    parts += [entries_table(entries)] if entries else []
    parts += [verdict_lines(verdicts)]
    text = "\n\n".join(parts) + "\n"
    folder.write_text("report.txt", text)
    return text, samples


def data_folder(folder, given):
    """A new, empty folder on the disk under test."""
    if given.data is None:
        os.makedirs(os.path.join(folder.partial, "data"))
        return os.path.join(folder.partial, "data")
    if not os.path.isdir(given.data):
        raise AskedWrongly(f"--data {given.data} is no folder; make it first")
    return tempfile.mkdtemp(prefix="dogwood-bench-log.", dir=given.data)


def run(given):
    plan = plan_of(given)
    build = build_dir(given.build)
    programs = {name: find_program(name, build) for name in PROGRAMS}
    if not given.no_figures:
        bench_log_figures.require()
    out = given.out or os.path.join(ROOT, "results", time.strftime("bench-log-%Y%m%d-%H%M%S"))
    progress = Progress(sys.stderr)
    with ResultsFolder(out) as folder:
        folder.write_toml("config.toml", effective(plan, given))
        data = data_folder(folder, given)
        try:
            bench = Bench(plan, programs, data, folder.file("logs", ""), progress)
            with machine.Awake(not given.let_sleep) as awake:
                facts = {**machine.meta(build, data), **awake.facts()}
                others = machine.Others()
                measured = bench.run()
            facts["others_cpu_share"] = round(others.share(), 3)
        finally:
            shutil.rmtree(data)
            progress.close()
        text, samples = write_report(folder, plan, measured, facts)
        if not given.no_figures:
            bench_log_figures.draw(folder, samples, measured.burst, machine.describe(facts))
        print(text)
        print(f"written to {folder.publish()}")
    return 0

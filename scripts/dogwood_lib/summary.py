"""The figures of trials: from the nodes' reports to the rows of summary.csv and the histograms beside it."""

import csv
import os

from dogwood_lib.experiment import text_of
from dogwood_lib.latencies import Latencies
from dogwood_lib.model import model_us

COLUMNS = (
    "workload protocol compute_nodes storage_nodes threads log_delay_ms log_delay_dist loop rate_tps sync "
    "batch_accesses read_pct distributed_pct remote_access_pct theta seed trial duration_s committed aborted unknown "
    "throughput_tps abort_pct dist_committed dist_mean_us dist_p50_us dist_p90_us dist_p99_us dist_p999_us dist_max_us "
    "dist_execution_us dist_prepare_us dist_commit_us dist_abort_us dist_release_us dist_occupancy_us local_committed "
    "local_mean_us local_p50_us local_p99_us log_writes_per_dist forced_log_writes_per_dist messages_per_dist "
    "log_bytes_per_dist cpu_us_per_txn model_dist_mean_us dist_wait_us writers_per_dist readers_per_dist unfinished "
    "undrained offered waiting waiting_max_us").split()

FIRST_FIGURE = COLUMNS.index("committed")
PARTS = ("execution", "prepare", "commit", "abort")
COSTS = ("log_writes", "forced_log_writes", "messages", "log_bytes", "writers", "readers")
# An open loop is overloaded if more than this share of what was due had not begun at the end. A cluster that keeps up has
# hardly more waiting than a burst leaves.
OVERLOAD_SHARE = 0.01


def column_of(key):
    """The column that tells a key of an experiment, or None: then sweep.csv tells it."""
    leaf = key.split(".")[-1]
    return leaf if leaf in COLUMNS[:FIRST_FIGURE] else None


def ratio(sum_, count):
    """None, and an empty cell, where there is nothing to divide by."""
    return sum_ / count if count else None


def total(reports, part, name):
    return sum(report[part].get(name, 0) for report in reports)


def latencies(reports, part):
    return sum((Latencies.of_report(report[part]) for report in reports), Latencies())


def row_of(point, trial, reports, floors):
    """One row of summary.csv, figures as numbers or None. `reports` are those of all compute nodes."""
    row = {column_of(key): value for key, value in point.items() if column_of(key)}
    row["trial"] = trial
    for name in ("committed", "aborted", "unknown"):
        row[name] = sum(report[name] for report in reports)
    row["throughput_tps"] = sum(report["committed"] / (report["window_us"] / 1e6) for report in reports
                                if report["window_us"])
    row["abort_pct"] = ratio(100 * row["aborted"], row["committed"] + row["aborted"] + row["unknown"])
    row["cpu_us_per_txn"] = ratio(sum(report["cpu_us"] for report in reports), row["committed"])
    row.update(distributed_figures(reports))
    row.update(local_figures(reports))
    row.update(backlog_figures(reports))
    row["model_dist_mean_us"] = model_us(point, row["dist_execution_us"], floors)
    return row


def sum_of(reports, name):
    """None if no report has it."""
    values = [report[name] for report in reports if name in report]
    return sum(values) if values else None


def backlog_figures(reports):
    """What the measured time left behind; the last three are an open loop's only."""
    row = {name: sum_of(reports, name) for name in ("unfinished", "undrained", "offered", "waiting")}
    row["waiting_max_us"] = max((float(report["waiting_us"]) for report in reports if report.get("waiting")), default=None)
    return row


def due_of(reports):
    """An open loop's transactions that were to begin or go on in the measured time; None in a closed loop."""
    offered = sum_of(reports, "offered")
    return None if offered is None else offered + sum_of(reports, "carried")


def is_overloaded(reports):
    """True if an open loop offered more than the cluster took: then latencies tell only of the transactions that ended,
    and those that wait longest aren't among them."""
    due = due_of(reports)
    return due is not None and sum_of(reports, "waiting") > OVERLOAD_SHARE * due


def distributed_figures(reports):
    committed = total(reports, "dist", "committed")
    times = latencies(reports, "dist")
    row = {"dist_committed": committed, "dist_mean_us": ratio(total(reports, "dist", "total_us"), committed)}
    for name, percent in (("p50", 50), ("p90", 90), ("p99", 99), ("p999", 99.9)):
        row[f"dist_{name}_us"] = times.percentile_us(percent)
    row["dist_max_us"] = times.max_us if times.count else None
    for part in PARTS:
        row[f"dist_{part}_us"] = ratio(total(reports, "dist", f"{part}_us"), committed)
    row["dist_release_us"] = ratio(total(reports, "dist", "release_us"), total(reports, "dist", "release_count"))
    row["dist_occupancy_us"] = ratio(total(reports, "dist", "occupancy_us"), committed)
    row["dist_wait_us"] = ratio(total(reports, "dist", "wait_us"), committed)
    # Costs are summed from begin to the last decision, so that none is cut in half, and have a count of their own.
    costed = sum(report["dist"].get("costed", report["dist"]["committed"]) for report in reports)
    for name in COSTS:
        row[f"{name}_per_dist"] = ratio(total(reports, "dist", name), costed)
    return row


def local_figures(reports):
    committed = total(reports, "local", "committed")
    times = latencies(reports, "local")
    return {"local_committed": committed, "local_mean_us": ratio(total(reports, "local", "total_us"), committed),
            "local_p50_us": times.percentile_us(50), "local_p99_us": times.percentile_us(99)}


def cell(name, value):
    """As it stands in summary.csv: times to a tenth of a microsecond, counts per transaction to four places."""
    if value is None or isinstance(value, (str, bool)) or name in COLUMNS[:FIRST_FIGURE]:
        return text_of(value)
    if isinstance(value, int):
        return str(value)
    return f"{value:.4f}" if name.endswith(("_per_dist", "_pct")) else f"{value:.1f}"


def cells(row):
    return {name: cell(name, row[name]) for name in COLUMNS}


def write_histograms(folder, slug, reports):
    """hist/SLUG-dist.csv and .hgrm, and those of local transactions, where there are any."""
    for part in ("dist", "local"):
        times = latencies(reports, part)
        if times.count == 0:
            continue
        folder.write_csv(f"hist/{slug}-{part}.csv", ["bucket_low_us", "count"],
                         [{"bucket_low_us": f"{low:.3f}", "count": count} for low, count in times.buckets])
        folder.write_text(f"hist/{slug}-{part}.hgrm", times.hgrm())


def write_all(folder, experiment, trials, floors):
    """summary.csv, in the order of points and trials, and sweep.csv if a key is swept that summary.csv doesn't tell.
    `trials` are (point, trial, reports)."""
    order = {repr(point): position for position, point in enumerate(experiment.points)}
    trials = sorted(trials, key=lambda one: (order[repr(one[0])], one[1]))
    rows = [cells(row_of(point, trial, reports, floors)) for point, trial, reports in trials]
    folder.write_csv("summary.csv", COLUMNS, rows)
    hidden = [key for key in experiment.swept() if column_of(key) is None]
    if hidden:
        folder.write_csv("sweep.csv", ["row", *hidden],
                         [{"row": number, **{key: text_of(point[key]) for key in hidden}}
                          for number, (point, _, _) in enumerate(trials, 1)])
    for point, trial, reports in trials:
        write_histograms(folder, experiment.slug(point, trial), reports)


def read_value(text):
    """A cell of summary.csv or sweep.csv."""
    if text == "":
        return None
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def read_rows(path):
    """The rows of a results folder, values read, with the swept keys of sweep.csv added."""
    with open(os.path.join(path, "summary.csv"), encoding="utf-8", newline="") as file:
        rows = [{name: read_value(text) for name, text in row.items()} for row in csv.DictReader(file)]
    sweep = os.path.join(path, "sweep.csv")
    if os.path.exists(sweep):
        with open(sweep, encoding="utf-8", newline="") as file:
            for row, extra in zip(rows, csv.DictReader(file), strict=True):
                row.update({key: read_value(text) for key, text in extra.items() if key != "row"})
    return rows

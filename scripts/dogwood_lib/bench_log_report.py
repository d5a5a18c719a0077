"""From the samples of `bench log` to rows, a table and verdicts; nothing here runs or reads anything.

A ratio is taken within each round, where its two sides were measured one shortly after the other, and the median of the
rounds is shown.
"""

import statistics

from dogwood_lib.bench_log_measure import describe
from dogwood_lib.table import format_batch, format_count, format_rate, format_ratio, format_us, render

COLUMNS = ["store", "sync", "depth", "per_s", "p50_us", "p99_us", "batch", "writer_per_s", "writer_ratio",
           "fdatasync_us", "exchange_us", "floor_ratio", "per_s_low", "per_s_high", "rounds"]
SAMPLE_COLUMNS = ["round", "series", "store", "sync", "depth", "streams", "bytes", "count", "seconds", "per_s", "p50_us",
                  "p90_us", "p99_us", "p999_us", "max_us", "mean_us", "per_message", "batch"]

TARGET_DEPTH = 64
TARGET_PER_S = 100_000
TARGET_WRITER_RATIO = 0.6
TARGET_FLOOR_RATIO = 1.5
TARGET_BURST_MS = 40.0
TARGET_ENTRIES_LOSS = 0.15
# Whoever waits behind a burst waits for its delay; a quarter of it tells the two apart on a busy machine, too.
TARGET_OTHERS_SHARE = 0.25


def median(values):
    """The median of what is there; None if nothing is."""
    present = [value for value in values if value is not None]
    return statistics.median(present) if present else None


class Samples:
    """Looks samples up by what they are of."""

    def __init__(self, samples):
        self.by_key = {}
        for sample in samples:
            key = (sample["series"], sample["store"], sample["sync"], sample["depth"])
            self.by_key.setdefault(key, {})[sample["round"]] = sample

    def of(self, series, store, sync, depth):
        """Round -> sample."""
        return self.by_key.get((series, store, sync, depth), {})

    def median(self, column, *key):
        return median(sample.get(column) for sample in self.of(*key).values())

    def configurations(self):
        return list(dict.fromkeys(key[1:3] for key in self.by_key if key[0] == "node"))

    def depths(self):
        return sorted({key[3] for key in self.by_key})


def has_sync(store, sync):
    return store == "rocksdb" and sync == "on"


def writer_ratio(samples, store, sync, depth):
    """Records a second of the node over those of one in-process writer with batches as large as the node's."""
    writer = samples.of("writer", store, sync, depth)
    return median(node["per_s"] / writer[number]["per_s"]
                  for number, node in samples.of("node", store, sync, depth).items() if number in writer)


def floor_ratio(samples, store, sync, depth):
    """The node's median latency over that of its parts: an empty exchange and, if it syncs, an append with
    fdatasync."""
    exchange = samples.of("exchange", None, None, depth)
    disk = samples.of("fdatasync", None, None, depth)
    ratios = []
    for number, node in samples.of("node", store, sync, depth).items():
        if number in exchange and (number in disk or not has_sync(store, sync)):
            floor = exchange[number]["p50_us"] + (disk[number]["p50_us"] if has_sync(store, sync) else 0)
            ratios.append(node["p50_us"] / floor)
    return median(ratios)


def rows_of(samples):
    """One dict with the keys of COLUMNS for each configuration and depth."""
    rows = []
    for store, sync in samples.configurations():
        for depth in samples.depths():
            node = [sample["per_s"] for sample in samples.of("node", store, sync, depth).values()]
            if not node:
                continue
            rows.append({
                "store": store, "sync": sync, "depth": depth, "rounds": len(node),
                "per_s": median(node), "per_s_low": min(node), "per_s_high": max(node),
                "p50_us": samples.median("p50_us", "node", store, sync, depth),
                "p99_us": samples.median("p99_us", "node", store, sync, depth),
                "batch": samples.median("batch", "node", store, sync, depth),
                "writer_per_s": samples.median("per_s", "writer", store, sync, depth),
                "writer_ratio": writer_ratio(samples, store, sync, depth),
                "fdatasync_us": samples.median("p50_us", "fdatasync", None, None, depth)
                if has_sync(store, sync) else None,
                "exchange_us": samples.median("p50_us", "exchange", None, None, depth),
                "floor_ratio": floor_ratio(samples, store, sync, depth),
            })
    return rows


def table_of(rows):
    titles = ["store", "in flight", "records/s", "p50", "p99", "batch", "writer records/s", "of the writer",
              "fdatasync p50", "exchange p50", "p50 / floors"]
    return render(titles, [[describe(row["store"], row["sync"]), row["depth"], format_rate(row["per_s"]),
                            format_us(row["p50_us"]), format_us(row["p99_us"]), format_batch(row["batch"]),
                            format_rate(row["writer_per_s"]), format_ratio(row["writer_ratio"]),
                            format_us(row["fdatasync_us"]), format_us(row["exchange_us"]),
                            format_ratio(row["floor_ratio"])] for row in rows])


def entries_rows(entries):
    """For each number of entries: the median rate, and the ratio to the smallest, round by round."""
    by_count = {}
    for sample in entries:
        by_count.setdefault(sample["entries"], {})[sample["round"]] = sample["per_s"]
    if not by_count:
        return []
    smallest = by_count[min(by_count)]
    return [{"entries": count, "per_s": median(rounds.values()), "rounds": len(rounds),
             "ratio": median(rate / smallest[number] for number, rate in rounds.items() if number in smallest)}
            for count, rounds in sorted(by_count.items())]


def entries_table(rows):
    return render(["entries in the log", "votes/s", "of the smallest"],
                  [[format_count(row["entries"]), format_rate(row["per_s"]), format_ratio(row["ratio"])]
                   for row in rows])


def burst_table(burst):
    lines = [["first answer", burst["first"]], ["last answer", burst["last"]]]
    for name in ("reads", "stats"):
        label = {"reads": "READ on another stream", "stats": "unary Stats"}[name]
        lines += [[f"{label}, quiet", burst[name]["quiet"]], [f"{label}, in a burst", burst[name]["burst"]]]
    return render([f"{burst['burst']} appends at {burst['delay_ms']:g} ms", "samples", "p50", "p99", "max"],
                  [[label, format_count(times["count"]), *(format_us(times[key] if times["count"] else None)
                                                           for key in ("p50_us", "p99_us", "max_us"))]
                   for label, times in lines])


def verdict(target, measured, text, reached):
    """`reached` is None if it was not measured."""
    return {"target": target, "measured": measured, "text": text, "reached": reached}


def verdicts_of(rows, burst, entries, quiet=True):
    """The targets in the order in which they are told. All of them are about a synced RocksDB store. If the machine was
    not quiet, nothing is judged: floors that others have raised flatter the node as much as others slow it down."""
    synced = {row["depth"]: row for row in rows if has_sync(row["store"], row["sync"])}
    found = [_throughput(synced.get(TARGET_DEPTH)), _writer(synced.get(TARGET_DEPTH)), _floor(synced.get(1)),
             *_burst(burst), _entries(entries)]
    return found if quiet else [{**each, "reached": None} for each in found]


def _throughput(row):
    target = f"at least {TARGET_PER_S:,} votes/s with {TARGET_DEPTH} in flight, synced"
    if row is None:
        return verdict(target, None, "", None)
    return verdict(target, row["per_s"], f"{format_rate(row['per_s'])} votes/s", row["per_s"] >= TARGET_PER_S)


def _writer(row):
    target = (f"at least {TARGET_WRITER_RATIO} of an in-process writer with batches of the same size, with "
              f"{TARGET_DEPTH} in flight")
    if row is None or row["writer_ratio"] is None:
        return verdict(target, None, "", None)
    text = (f"{format_ratio(row['writer_ratio'])} of {format_rate(row['writer_per_s'])} records/s with batches of "
            f"{format_batch(row['batch'])}")
    return verdict(target, row["writer_ratio"], text, row["writer_ratio"] >= TARGET_WRITER_RATIO)


def _floor(row):
    target = f"p50 with 1 in flight at most {TARGET_FLOOR_RATIO} x (sync floor + empty exchange)"
    if row is None or row["floor_ratio"] is None:
        return verdict(target, None, "", None)
    text = (f"{format_us(row['p50_us'])} = {format_ratio(row['floor_ratio'])} x ({format_us(row['fdatasync_us'])} + "
            f"{format_us(row['exchange_us'])})")
    return verdict(target, row["floor_ratio"], text, row["floor_ratio"] <= TARGET_FLOOR_RATIO)


def _burst(burst):
    if burst is None:
        return [verdict(f"a burst of appends at 32 ms injected delay answered within {TARGET_BURST_MS:g} ms", None, "",
                        None)]
    last = burst["last"]
    target = (f"{burst['burst']} appends at {burst['delay_ms']:g} ms injected delay all answered within "
              f"{TARGET_BURST_MS:g} ms")
    text = f"slowest of {last['count']} bursts {format_us(last['max_us'])}, median {format_us(last['p50_us'])}"
    found = [verdict(target, last["max_us"] / 1e3, text, last["max_us"] / 1e3 <= TARGET_BURST_MS)]
    limit = burst["delay_ms"] * 1e3 * TARGET_OTHERS_SHARE
    for name, label in (("reads", "reads"), ("stats", "administration")):
        target = f"{label} during a burst: p99 below {format_us(limit)}, a quarter of the delay"
        times = burst[name]["burst"]
        if times["count"] == 0:
            found.append(verdict(target, None, "", None))
            continue
        text = (f"p99 {format_us(times['p99_us'])}, p50 {format_us(times['p50_us'])} "
                f"(quiet: {format_us(burst[name]['quiet']['p99_us'])}, {format_us(burst[name]['quiet']['p50_us'])})")
        found.append(verdict(target, times["p99_us"] / 1e3, text, times["p99_us"] < limit))
    return found


def _entries(rows):
    if len(rows) < 2:
        return verdict("votes/s with a full log within 15 % of a small one", None, "", None)
    small, large = rows[0], rows[-1]
    target = (f"votes/s with {format_count(large['entries'])} entries within {TARGET_ENTRIES_LOSS * 100:.0f} % of those "
              f"with {format_count(small['entries'])}")
    text = f"{format_ratio(large['ratio'])} ({format_rate(large['per_s'])} against {format_rate(small['per_s'])})"
    return verdict(target, large["ratio"], text, large["ratio"] >= 1 - TARGET_ENTRIES_LOSS)


def verdict_lines(verdicts):
    def word(each):
        if each["reached"] is None:
            return "not measured" if each["measured"] is None else "not judged"
        return "reached" if each["reached"] else "not reached"

    return "\n".join(f"{word(each):12}  {each['target']}" + (f": {each['text']}" if each["text"] else "")
                     for each in verdicts)

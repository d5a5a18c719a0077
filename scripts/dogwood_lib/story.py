"""What a run tells in a terminal: a table, and what it means in a sentence."""

from dogwood_lib.analysis import protocol_name, title_of
from dogwood_lib.experiment import text_of
from dogwood_lib.table import format_rate, format_ratio, format_us, render


PHRASES = {"log_delay_ms": "at a log delay of {} ms", "threads": "with {} workers per node", "ycsb.theta": "with θ = {}",
           "compute_nodes": "with {} compute nodes", "storage_nodes": "with {} storage nodes",
           "rate_tps": "at {} transactions/s offered", "ycsb.read_pct": "with {} % reads",
           "ycsb.distributed_pct": "with {} % distributed transactions"}


def phrase(key, value):
    """Where on the axis, within a sentence."""
    return PHRASES.get(key, title_of(key) + " = {},").format(text_of(value))


def latency_name(results):
    """The class of transactions that a run is about."""
    return "dist" if any(row["dist_committed"] for row in results.rows) else "local"


def table(results, facet):
    name = latency_name(results)
    titles = [title_of(results.x_key)] if results.x_key else []
    for protocol in results.protocols:
        shown = protocol_name(protocol)
        titles += [f"{shown} mean", f"{shown} p99", f"{shown} txn/s"]
    both = {"cornus", "2pc"} <= set(results.protocols)
    titles += ["2PC / Cornus mean"] if both else []
    rows = []
    for x in results.x_values(facet):
        row = [text_of(x)] if results.x_key else []
        for protocol in results.protocols:
            point = results.point(facet, protocol, x)
            row += ["", "", ""] if point is None else [format_us(point.mean(f"{name}_mean_us")),
                                                       format_us(point.mean(f"{name}_p99_us")),
                                                       format_rate(point.mean("throughput_tps"))]
        ratio = results.ratio(facet, x, f"{name}_mean_us") if both else None
        rows.append(row + ([format_ratio(ratio.mean) if ratio else ""] if both else []))
    return render(titles, rows)


def headline(results, facet):
    """One or two sentences, or nothing if there is nothing to compare."""
    found = [(x, results.ratio(facet, x)) for x in results.x_values(facet)]
    found = [(x, ratio) for x, ratio in found if ratio is not None]
    if not found:
        return ""
    x, ratio = found[-1] if results.x_key == "log_delay_ms" else max(found, key=lambda one: one[1].mean)
    where = "" if results.x_key is None else f" {phrase(results.x_key, x)}"
    cornus, other = (results.point(facet, protocol, x).mean("dist_mean_us") for protocol in ("cornus", "2pc"))
    times = f"{format_us(cornus)} with Cornus, {format_us(other)} with two-phase commit"
    if ratio.mean >= 1.02:
        text = f"A distributed transaction took {times}{where}: {format_ratio(ratio.mean)} times as long."
        if results.x_key == "log_delay_ms":
            text += " Two-phase commit waits for two log writes, one after the other; Cornus for one."
        return text
    return f"A distributed transaction took {times}{where}: Cornus is not faster here."


def overload(results):
    """A warning, or nothing if every open loop got what it offered."""
    count = len(results.meta.get("overloaded") or ())
    if not count:
        return ""
    return (f"{count} of {len(results.rows)} trials were overloaded: transactions were due that no worker had taken by the end "
            f"of the measured time. Their latencies tell only of those that ended, and would be longer in a longer run. Offer "
            f"less (rate_tps), or give more workers (threads).")


def tell(results):
    """All of it, for stdout."""
    parts = [overload(results)]
    for facet in results.facets:
        text = results.facet_text(facet)
        parts += [text + ":"] if text else []
        parts += [table(results, facet), headline(results, facet)]
    return "\n\n".join(part for part in parts if part)

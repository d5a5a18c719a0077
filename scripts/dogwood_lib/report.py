"""`dogwood report`: writes report.html, one page that tells a run without anything beside it and without a network."""

import base64
import html
import os

from dogwood_lib import story
from dogwood_lib.analysis import Results, protocol_name, title_of
from dogwood_lib.bench_log import MAX_OTHERS_SHARE
from dogwood_lib.experiment import text_of
from dogwood_lib.machine import describe
from dogwood_lib.report_text import CAPTIONS, INTRODUCTION, STYLE, TERMS
from dogwood_lib.summary import PARTS
from dogwood_lib.table import format_count, format_rate, format_ratio, format_us


def add_arguments(parser):
    parser.add_argument("results", metavar="DIR", help="a results folder of `dogwood run`")


def run(given):
    print(write(Results(given.results)))
    return 0


def write(results):
    """Writes report.html with the figures that are there; returns its path."""
    path = os.path.join(results.path, "report.html")
    with open(path, "w", encoding="utf-8") as file:
        file.write(page(results))
    return path


def text(value):
    return html.escape(str(value))


def page(results):
    name = results.meta.get("name") or results.plan.name
    parts = [f"<h1>{text(title(results))}</h1>", headline(results), f"<p class='run'>{text(what_was_run(results))}</p>",
             f"<p>{INTRODUCTION}</p>"]
    for facet in results.facets:
        parts += facet_part(results, facet)
    parts += [trials_part(results), floors_part(results), machine_part(results), reproduce_part(results),
              f"<h2>Terms</h2>{TERMS}"]
    return (f"<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'><meta name='viewport' "
            f"content='width=device-width, initial-scale=1'><title>{text(name)} - Dogwood</title>\n<style>{STYLE}</style>"
            f"</head>\n<body><main>\n" + "\n".join(part for part in parts if part) + "\n</main></body></html>\n")


def title(results):
    return f"{results.plan.name}: " + " against ".join(
        {"2pc": "two-phase commit"}.get(name, protocol_name(name)) for name in results.protocols)


def headline(results):
    sentences = []
    for facet in results.facets:
        where = results.facet_text(facet)
        said = story.headline(results, facet)
        if said:
            sentences.append((f"{where}: " if where else "") + said)
    shares = results.meta.get("others_cpu_share") or {}
    disturbed = [share for share in shares.values() if share > MAX_OTHERS_SHARE]
    alarms = results.meta.get("alarms")
    parts = [f"<p class='headline'>{text(sentence)}</p>" for sentence in sentences]
    told = story.overload(results)
    if told:
        parts.insert(0, f"<p class='alarm'>{text(told)}</p>")
    if disturbed:
        parts.insert(0, f"<p class='alarm'>{len(disturbed)} of {len(shares)} trials were disturbed: other processes had up to "
                        f"{100 * max(disturbed):.0f} % of the processors meanwhile. Measure again on a quiet machine.</p>")
    if alarms:
        listed = ", ".join(f"{name} {count}" for name, count in alarms.items())
        parts.insert(0, f"<p class='alarm'>A rule of the protocol was broken in this run (alarms: {text(listed)}). Its "
                        f"figures prove nothing; look at the logs.</p>")
    return "\n".join(parts)


def what_was_run(results):
    """The set-up in plain words."""
    values = results.plan.values

    def value(key):
        return " / ".join(text_of(one) for one in values[key] if one is not None)

    delay = value("log_delay_ms") + " ms"
    if values["log_delay_dist"] != ["constant"]:
        delay += f" ({value('log_delay_dist')})"
    parts = [f"{value('compute_nodes')} compute and {value('storage_nodes')} storage nodes, real processes on one machine",
             f"{value('threads')} workers on each compute node",
             "closed loop: a worker begins its next transaction when it has the answer to the last"
             if values["loop"] == ["closed"] else f"{value('loop')} loop at {value('rate_tps')} transactions/s",
             f"YCSB with {format_count(values['ycsb.records'][0]) if len(values['ycsb.records']) == 1 else value('ycsb.records')}"
             f" rows a node, {value('ycsb.accesses')} accesses, {value('ycsb.read_pct')} % reads, "
             f"{value('ycsb.distributed_pct')} % of the transactions distributed with {value('ycsb.remote_access_pct')} % of "
             f"their accesses remote, skew θ = {value('ycsb.theta')}",
             f"injected log delay {delay}",
             {"true": "the log synced to disk before it answers", "false": "the log not synced"}.get(
                 value("sync"), "the log synced or not"),
             f"{value('duration_s')} s measured after {value('warmup_s')} s of warm-up, {results.plan.trials} "
             f"{'trials' if results.plan.trials > 1 else 'trial'} of each, interleaved"]
    return "What was run: " + "; ".join(parts) + "."


def html_table(titles, rows, left=1, css=""):
    """`left` columns of words, the others are figures."""
    def row(tag, row_cells):
        return "<tr>" + "".join(f"<{tag}{'' if i < left else ' class=n'}>{text(one)}</{tag}>"
                                for i, one in enumerate(row_cells)) + "</tr>"
    return (f"<div class='scroll'><table class='{css}'><thead>{row('th', titles)}</thead><tbody>"
            + "".join(row("td", one) for one in rows) + "</tbody></table></div>")


def estimate_us(found):
    """A mean with half its confidence interval."""
    if found is None:
        return ""
    return format_us(found.mean) + ("" if found.half is None else f" ± {format_us(found.half)}")


def facet_part(results, facet):
    where = results.facet_text(facet)
    parts = [f"<h2>{text('Results: ' + where if where else 'Results')}</h2>", comparison(results, facet)]
    for name in ("latency", "breakdown", "throughput"):
        parts.append(figure(results, facet, name))
        if name == "breakdown":
            parts.append(parts_table(results, facet))
    parts += ["<h3>What a transaction costs</h3>", costs_table(results, facet)]
    return parts


def comparison(results, facet):
    """A row for each x: both protocols, their ratio, the model."""
    prefix = story.latency_name(results)
    both = {"cornus", "2pc"} <= set(results.protocols)
    titles = [title_of(results.x_key)] if results.x_key else []
    x_columns = len(titles)
    for protocol in results.protocols:
        shown = protocol_name(protocol)
        titles += [f"{shown} mean", f"{shown} model", f"{shown} p99", f"{shown} txn/s"]
    titles[x_columns:x_columns] = ["2PC / Cornus, mean"] if both else []
    rows = []
    for x in results.x_values(facet):
        row = [text_of(x)] if results.x_key else []
        for protocol in results.protocols:
            point = results.point(facet, protocol, x)
            row += [""] * 4 if point is None else [
                estimate_us(point.of(f"{prefix}_mean_us")), format_us(point.mean("model_dist_mean_us")),
                format_us(point.mean(f"{prefix}_p99_us")), format_rate(point.mean("throughput_tps"))]
        if both:
            ratio = results.ratio(facet, x, f"{prefix}_mean_us")
            half = "" if ratio is None or ratio.half is None else f" ± {ratio.half:.2f}"
            row.insert(x_columns, "" if ratio is None else format_ratio(ratio.mean) + half)
        rows.append(row)
    kind = "distributed transactions" if prefix == "dist" else "transactions, all of them local"
    return html_table(titles, rows, left=x_columns, css="main" if both and results.x_key else "") + \
        f"<p class='note'>Latencies of {kind}; ± is the 95 % confidence interval over the trials.</p>"


def figure(results, facet, name):
    """An SVG as a data URI: several on one page mustn't share ids."""
    path = os.path.join(results.path, "figures", f"{name}{results.facet_slug(facet)}.svg")
    if not os.path.exists(path):
        return ""
    with open(path, "rb") as file:
        data = base64.b64encode(file.read()).decode("ascii")
    caption = CAPTIONS[name]
    return (f"<figure><img alt='{text(name)}' src='data:image/svg+xml;base64,{data}'>"
            f"<figcaption>{caption}</figcaption></figure>")


def points_of(results, facet):
    """(x, protocol, Point) in the order of the tables."""
    found = [(x, protocol, results.point(facet, protocol, x)) for x in results.x_values(facet)
             for protocol in results.protocols]
    return [one for one in found if one[2] is not None]


def point_table(results, facet, columns):
    """A row for each point; `columns` are (title, function of a Point)."""
    titles = ([title_of(results.x_key)] if results.x_key else []) + ["protocol", *(name for name, _ in columns)]
    rows = [([text_of(x)] if results.x_key else []) + [protocol_name(protocol), *(read(point) for _, read in columns)]
            for x, protocol, point in points_of(results, facet)]
    return html_table(titles, rows, left=2 if results.x_key else 1)


def mean_us(name):
    return lambda point: format_us(point.mean(name))


def mean_number(name, digits):
    def read(point):
        value = point.mean(name)
        return "" if value is None else f"{value:,.{digits}f}"
    return read


def parts_table(results, facet):
    if not results.has_breakdown():
        return ""
    columns = [(part, mean_us(f"dist_{part}_us")) for part in PARTS]
    columns += [("sum", mean_us("dist_mean_us")), ("last lock freed", mean_us("dist_release_us")),
                ("worker occupied", mean_us("dist_occupancy_us"))]
    return point_table(results, facet, columns)


def costs_table(results, facet):
    columns = [("log writes", mean_number("log_writes_per_dist", 2)), ("of them forced",
               mean_number("forced_log_writes_per_dist", 2)), ("messages", mean_number("messages_per_dist", 2)),
               ("log bytes", mean_number("log_bytes_per_dist", 0)), ("CPU of compute nodes", mean_us("cpu_us_per_txn")),
               ("aborted attempts", lambda point: f"{point.mean('abort_pct'):.2f} %")]
    return point_table(results, facet, columns) + \
        "<p class='note'>Per committed distributed transaction; CPU per committed transaction of any kind.</p>"


def trials_part(results):
    """Every trial, and which one the paper's rule would have chosen."""
    keys = results.swept
    best = {id(point.best()) for facet in results.facets for _, _, point in points_of(results, facet)}
    figures = ("throughput_tps", "abort_pct", "dist_mean_us", "dist_p50_us", "dist_p90_us", "dist_p99_us", "dist_p999_us",
               "dist_max_us", "local_mean_us", "local_p99_us", "offered", "waiting", "unfinished")
    shown = [name for name in figures if any(row.get(name) is not None for row in results.rows)]
    titles = [*(title_of(key) for key in keys), "protocol", "trial", *map(figure_title, shown), "best"]
    rows = [[*(text_of(results.value(row, key)) for key in keys), protocol_name(row["protocol"]), row["trial"],
             *(figure_cell(name, row.get(name)) for name in shown), "best" if id(row) in best else ""]
            for row in results.rows]
    return ("<h2>Every trial</h2><p>All trials count in the means above. The column on the right marks the trial with the "
            "best throughput of its point: the paper's rule, which reports only that one (of five).</p>"
            + html_table(titles, rows, left=len(keys) + 1, css="trials"))


def figure_title(name):
    return {"throughput_tps": "txn/s", "abort_pct": "aborted"}.get(name, name.replace("dist_", "").replace("_us", "")
                                                                   .replace("_", " ").replace("p999", "p99.9"))


def figure_cell(name, value):
    if value is None:
        return ""
    if name == "throughput_tps":
        return format_rate(value)
    if name in ("offered", "waiting", "unfinished"):
        return format_count(value)
    return f"{value:.2f} %" if name == "abort_pct" else format_us(value)


def floors_part(results):
    floors = results.meta.get("floors")
    if not floors:
        return ""
    kinds = ("us", "p50_us", "p99_us")
    rows = [["empty round trip between two processes", *(format_us(floors[f"round_trip_{kind}"]) for kind in kinds)]]
    names = {"sync": "synced", "no_sync": "not synced"}
    for name in floors["log_append_us"]:
        rows.append([f"one write to the log, {names[name]} ({floors['writers']} at once, {floors['redo_bytes']} bytes)",
                     *(format_us(floors[f"log_append_{kind}"][name]) for kind in kinds)])
    return ("<h2>The floors of this run</h2><p>Measured before each round of trials, with nothing beside them. From these, and "
            "from the measured execution, the model says what a commit should take: execution + 1 round trip + 1 log write "
            "(Cornus) or 2 (2PC), where a log write is the injected delay + 1 round trip + 1 write to the log.</p>"
            + html_table(["floor", "mean", "p50", "p99"], rows))


def machine_part(results):
    meta = results.meta
    disk = meta.get("file_system") or {}
    rows = [("machine", describe(meta)), ("system", meta.get("distribution")),
            ("data on", f"{disk.get('type')} ({disk.get('device')}, {disk.get('options')})" if disk else None),
            ("hosts", ", ".join(meta.get("hosts", []))),
            ("Dogwood", " ".join(filter(None, [meta.get("version"), (meta.get("commit") or "")[:12],
                                               "with local changes" if meta.get("dirty") else ""]))),
            ("built with", ", ".join(filter(None, [meta.get("compiler"), meta.get("build_type"), meta.get("sanitizer")
                                                   and f"sanitizer {meta['sanitizer']}: figures mean little"]))),
            ("libraries", ", ".join(f"{name} {meta[key]}" for name, key in (("RocksDB", "rocksdb"), ("gRPC", "grpc"))
                                    if meta.get(key))),
            ("time", meta.get("time"))]
    return "<h2>Where it ran</h2>" + html_table(["", ""], [row for row in rows if row[1]], left=2, css="facts")


def reproduce_part(results):
    with open(os.path.join(results.path, "config.toml"), encoding="utf-8") as file:
        config = file.read()
    command = results.meta.get("command")
    call = f"<p>From the top of the source tree:</p><pre>{text(command)}</pre>" if command else ""
    return (f"<h2>How to run it again</h2>{call}<p>The experiment with all defaults written out (<code>config.toml</code>; "
            f"to be given to <code>scripts/dogwood run</code> in place of the file):</p><pre>{text(config)}</pre>")


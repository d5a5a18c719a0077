"""`dogwood plot`: draws the figures of a results folder again, as SVG and PNG with the plotted values beside them."""

import csv
import os

from dogwood_lib.analysis import Results, protocol_name, title_of
from dogwood_lib.bench_log_figures import load, require
from dogwood_lib.experiment import text_of
from dogwood_lib.story import latency_name
from dogwood_lib.summary import PARTS
from dogwood_lib.table import format_rate

# Of Okabe and Ito's set, which people with any colour vision tell apart; markers and hatches tell the same again.
COLOURS = {"cornus": "#0072b2", "2pc": "#d55e00"}
MARKERS = {"cornus": "o", "2pc": "s"}
OTHER_COLOURS = ("#009e73", "#cc79a7", "#e69f00")
PART_COLOURS = {"execution": "#56b4e9", "prepare": "#f0e442", "commit": "#d55e00", "abort": "#999999"}
PART_HATCHES = {"execution": "", "prepare": "///", "commit": "...", "abort": "xxx"}
PART_TITLES = {"execution": "execution", "prepare": "prepare: until all votes are known",
               "commit": "commit: until the caller's answer", "abort": "earlier, aborted attempts"}
BAR_WIDTH = 0.36
GROUP_GAP = 0.06


def add_arguments(parser):
    parser.add_argument("results", metavar="DIR", help="a results folder of `dogwood run`")


def run(given):
    require()
    results = Results(given.results)
    for path in draw_all(results):
        print(path)
    return 0


def colour_of(results, protocol):
    others = [name for name in results.protocols if name not in COLOURS]
    return COLOURS.get(protocol) or OTHER_COLOURS[others.index(protocol) % len(OTHER_COLOURS)]


def draw_all(results):
    """Writes figures/*.svg, *.png and *.csv; returns the paths of the SVGs."""
    plt = load()
    paths = []
    for facet in results.facets:
        figures = {"latency": (latency, latency_data(results, facet)),
                   "breakdown": (breakdown, breakdown_data(results, facet)),
                   "throughput": (throughput, throughput_data(results, facet))}
        if not results.has_breakdown():
            del figures["breakdown"]
        for name, (draw, data) in figures.items():
            path = os.path.join(results.path, "figures", name + results.facet_slug(facet))
            write_data(path + ".csv", data)
            figure = draw(plt, results, facet)
            for kind in ("svg", "png"):
                figure.savefig(f"{path}.{kind}", metadata={"Date": None} if kind == "svg" else {})
            plt.close(figure)
            paths.append(path + ".svg")
    return paths


def write_data(path, rows):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: f"{value:.6g}" if isinstance(value, float) else text_of(value)
                          for name, value in row.items()} for row in rows)


def _rows(results, facet, figures):
    """One row for each protocol and x; `figures` gives what is plotted of a Point."""
    return [{"protocol": protocol, results.x_key or "trials": x if results.x_key else len(point.rows), **figures(point)}
            for protocol in results.protocols for x, point in results.series(facet, protocol)]


def milliseconds(value):
    return None if value is None else value / 1000


def _estimate(point, name, scale):
    found = point.of(name)
    if found is None:
        return None, None
    return found.mean / scale, None if found.half is None else found.half / scale


def latency_data(results, facet):
    prefix = latency_name(results)

    def figures(point):
        mean, mean_half = _estimate(point, f"{prefix}_mean_us", 1000)
        p99, p99_half = _estimate(point, f"{prefix}_p99_us", 1000)
        return {"mean_ms": mean, "mean_ci95_ms": mean_half, "p99_ms": p99, "p99_ci95_ms": p99_half,
                "model_ms": milliseconds(point.mean("model_dist_mean_us"))}
    return _rows(results, facet, figures)


def breakdown_data(results, facet):
    return _rows(results, facet, lambda point: {f"{part}_ms": milliseconds(point.mean(f"dist_{part}_us"))
                                                for part in PARTS})


def throughput_data(results, facet):
    def figures(point):
        tps, half = _estimate(point, "throughput_tps", 1)
        return {"throughput_tps": tps, "ci95_tps": half, "best_trial_tps": point.best()["throughput_tps"],
                "model_tps": point.model_tps()}
    return _rows(results, facet, figures)


def latency(plt, results, facet):
    """Mean and p99 side by side on one scale of values each."""
    kind = "distributed" if latency_name(results) == "dist" else "local"
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.2))
    data = latency_data(results, facet)
    _series(left, results, data, "mean_ms", "mean_ci95_ms", "model_ms")
    _series(right, results, data, "p99_ms", "p99_ci95_ms", None)
    left.set_title("Mean")
    right.set_title("99th percentile")
    for axes in (left, right):
        axes.set_ylabel(f"latency of {kind} transactions (ms)")
        axes.set_ylim(bottom=0)
    _legend(figure, left)
    _headline(figure, results, facet, "Latency until the caller has its answer")
    return figure


def throughput(plt, results, facet):
    figure, axes = plt.subplots(figsize=(6.4, 4.2))
    _series(axes, results, throughput_data(results, facet), "throughput_tps", "ci95_tps", "model_tps")
    axes.set_ylabel("committed transactions/s, whole cluster")
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(lambda value, position: format_rate(value))
    _legend(figure, axes)
    _headline(figure, results, facet, "Throughput")
    return figure


def breakdown(plt, results, facet):
    """A stack for each protocol, side by side at each x."""
    data = breakdown_data(results, facet)
    xs = results.x_values(facet)
    figure, axes = plt.subplots(figsize=(max(6.4, 1.6 + 1.35 * len(xs) * max(1, len(results.protocols) / 2)), 4.6))
    shown = [part for part in PARTS if any((row[f"{part}_ms"] or 0) > 0 for row in data)]
    top = max(sum(row[f"{part}_ms"] or 0 for part in PARTS) for row in data)
    places, names = [], []
    for row in data:
        place = _place(results, xs, row)
        places.append(place)
        names.append(protocol_name(row["protocol"]))
        bottom = 0
        for part in shown:
            height = row[f"{part}_ms"] or 0
            axes.bar(place, height, BAR_WIDTH, bottom=bottom, color=PART_COLOURS[part], hatch=PART_HATCHES[part],
                     edgecolor="#333333", linewidth=0.6)
            bottom += height
        axes.annotate(f"{bottom:.3g}", (place, bottom), (0, 3), textcoords="offset points", ha="center", fontsize=8.5)
    axes.set_xticks(places, names, fontsize=8.5)
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="x", visible=False)
    _name_groups(axes, results, xs)
    axes.set_ylim(0, top * 1.12)
    axes.set_ylabel("mean of distributed transactions (ms)")
    _part_legend(plt, figure, shown)
    _headline(figure, results, facet, "Where the time of a distributed transaction goes")
    return figure


def _part_legend(plt, figure, shown):
    handles = [plt.Rectangle((0, 0), 1, 1, facecolor=PART_COLOURS[part], hatch=PART_HATCHES[part], edgecolor="#333333",
                             linewidth=0.6) for part in shown]
    figure.tight_layout(rect=(0, 0, 1, 0.88))
    figure.legend(handles, [PART_TITLES[part] for part in shown], loc="upper left", bbox_to_anchor=(0.01, 0.935),
                  ncol=len(shown), columnspacing=1.4, handlelength=1.8)


def _place(results, xs, row):
    """Where a bar stands: groups by x, in each the protocols in their order."""
    group = xs.index(row[results.x_key]) if results.x_key else 0
    width = BAR_WIDTH + GROUP_GAP
    return group * max(1.0, len(results.protocols) * width + 0.3) \
        + (results.protocols.index(row["protocol"]) - (len(results.protocols) - 1) / 2) * width


def _name_groups(axes, results, xs):
    if results.x_key is None:
        return
    step = max(1.0, len(results.protocols) * (BAR_WIDTH + GROUP_GAP) + 0.3)
    for number, x in enumerate(xs):
        axes.annotate(text_of(x), (number * step, 0), (0, -24), xycoords=("data", "axes fraction"),
                      textcoords="offset points", ha="center", va="top", fontweight="bold")
    axes.set_xlabel(title_of(results.x_key), labelpad=24)


def _series(axes, results, data, name, half_name, model_name):
    """Lines over a swept number, bars over anything else; the model as a line, or as a mark on its bar."""
    if results.x_is_number():
        _lines(axes, results, data, name, half_name, model_name)
    else:
        _bars(axes, results, data, name, half_name, model_name)


def _lines(axes, results, data, name, half_name, model_name):
    """The model is a broad pale line, which shows beneath a measured one that falls on it."""
    for protocol in results.protocols:
        rows = [row for row in data if row["protocol"] == protocol and row[name] is not None]
        colour = colour_of(results, protocol)
        axes.errorbar([row[results.x_key] for row in rows], [row[name] for row in rows],
                      yerr=[row[half_name] or 0 for row in rows], color=colour, marker=MARKERS.get(protocol, "D"),
                      markersize=5.5, linewidth=2, capsize=3, label=f"{protocol_name(protocol)}, measured")
        modelled = [row for row in rows if model_name and row[model_name] is not None]
        if modelled:
            axes.plot([row[results.x_key] for row in modelled], [row[model_name] for row in modelled], color=colour,
                      linewidth=7, alpha=0.25, zorder=1.5, solid_capstyle="round", label=f"{protocol_name(protocol)}, model")
    axes.set_xlabel(title_of(results.x_key))
    xs = sorted({row[results.x_key] for row in data})
    span = xs[-1] - xs[0]
    if all(after - before >= 0.055 * span for before, after in zip(xs, xs[1:])):
        axes.set_xticks(xs, [text_of(x) for x in xs])
    axes.set_xlim(xs[0] - 0.03 * span, xs[-1] + 0.03 * span)


def _bars(axes, results, data, name, half_name, model_name):
    xs = [row[results.x_key] for row in data] if results.x_key else [None]
    xs = list(dict.fromkeys(xs))
    marked = False
    places = []
    for row in data:
        if row[name] is None:
            continue
        place = _place(results, xs, row)
        places.append((place, protocol_name(row["protocol"])))
        axes.bar(place, row[name], BAR_WIDTH, color=colour_of(results, row["protocol"]), yerr=row[half_name] or None,
                 capsize=4, ecolor="#333333")
        shown = f"{row[name]:.3g}" if row[name] < 1000 else format_rate(row[name])
        axes.annotate(shown, (place, row[name] + (row[half_name] or 0)), (0, 4), textcoords="offset points", ha="center",
                      fontsize=9)
        if model_name and row[model_name] is not None:
            axes.plot([place - BAR_WIDTH / 2, place + BAR_WIDTH / 2], [row[model_name]] * 2, color="#000000",
                      linestyle=(0, (4, 2)), linewidth=1.6, label=None if marked else "model")
            marked = True
    axes.set_xticks([place for place, _ in places], [text for _, text in places], fontsize=9)
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="x", visible=False)
    axes.margins(x=0.15, y=0.12)
    _name_groups(axes, results, xs)


def _legend(figure, axes):
    """In a row above the panels, where it covers nothing."""
    handles, names = axes.get_legend_handles_labels()
    order = sorted(range(len(names)), key=lambda i: (names[i].endswith("model"), names[i] != "Cornus, measured"))
    handles, names = [handles[i] for i in order], [names[i] for i in order]
    figure.tight_layout(rect=(0, 0, 1, 0.88 if handles else 0.94))
    if handles:
        figure.legend(handles, names, loc="upper left", bbox_to_anchor=(0.01, 0.945), ncol=4, columnspacing=1.4)


def _headline(figure, results, facet, text):
    figure.suptitle(text, x=0.015, y=0.99, ha="left", fontsize=12.5, fontweight="bold")
    first = results.rows[0]
    trials = len({row["trial"] for row in results.rows})
    parts = [results.facet_text(facet), f"{first['workload'].upper()}, {first['compute_nodes']} compute and "
             f"{first['storage_nodes']} storage nodes, {first['threads']} workers each"
             if not {"compute_nodes", "storage_nodes", "threads"} & set(results.swept) else "",
             f"mean of {trials} trials with 95 % confidence" if trials > 1 else "one trial"]
    figure.text(0.015, 0.005, "; ".join(part for part in parts if part), fontsize=8, color="#555555", ha="left", va="top")

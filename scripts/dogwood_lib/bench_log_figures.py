"""The pictures of `bench log`. Colours tell the configuration, line styles who was measured."""

import importlib.util

from dogwood_lib.bench_log_measure import describe
from dogwood_lib.bench_log_report import TARGET_BURST_MS, TARGET_DEPTH, TARGET_PER_S, has_sync
from dogwood_lib.errors import EnvironmentFailure
from dogwood_lib.histograms import cumulative

COLOURS = {("rocksdb", "on"): "#0072b2", ("rocksdb", "off"): "#d55e00", ("memory", "off"): "#009e73"}
FLOOR_COLOURS = {"exchange": "#777777", "fdatasync": "#222222"}
STYLE = {"font.size": 10, "axes.titlesize": 11, "axes.titleweight": "bold", "axes.titlelocation": "left",
         "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": "#e4e4e4",
         "axes.axisbelow": True, "legend.frameon": False, "legend.fontsize": 9, "svg.fonttype": "none",
         "svg.hashsalt": "dogwood", "savefig.bbox": "tight", "savefig.dpi": 130}


def require():
    """Refuses before anything is measured if nothing can be drawn."""
    if importlib.util.find_spec("matplotlib") is None:
        raise EnvironmentFailure("matplotlib is missing, which draws the figures; install it with scripts/packages plot, "
                                 "or give --no-figures")


def load():
    """The plotting module, drawing into files only."""
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    plt.rcParams.update(STYLE)
    return plt


def draw(folder, samples, burst, facts):
    """Writes figures/*.png and *.svg."""
    plt = load()
    figures = {"throughput": throughput(plt, samples, facts), "latency": latency(plt, samples, facts)}
    if burst is not None:
        figures["burst"] = burst_figure(plt, burst, facts)
    for name, figure in figures.items():
        for kind in ("png", "svg"):
            metadata = {"Date": None} if kind == "svg" else {}
            figure.savefig(folder.file("figures", f"{name}.{kind}"), metadata=metadata)
        plt.close(figure)


def _caption(figure, facts):
    figure.text(0.01, -0.01, facts, fontsize=7.5, color="#666666", ha="left", va="top")


def _line(samples, series, store, sync, column):
    points = [(depth, samples.median(column, series, store, sync, depth)) for depth in samples.depths()]
    return zip(*[(depth, value) for depth, value in points if value is not None])


def _depth_axis(axes, samples):
    axes.set_xscale("log", base=2)
    axes.set_xticks(samples.depths(), [str(depth) for depth in samples.depths()])
    axes.minorticks_off()
    axes.set_xlabel("log requests in flight (writer, fdatasync: records in one batch)")


def _rate(value, position):
    """1000 -> "1 k"; a label of a logarithmic axis."""
    del position
    for size, letter in ((1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def _time(value, position):
    del position
    return f"{value / 1e3:g} ms" if value >= 1e3 else f"{value:g} µs"


def _time_axis(axis):
    """Logarithmic, with labels at 1, 2 and 5, since times span few powers of ten."""
    from matplotlib import ticker
    axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(_time)
    axis.set_minor_locator(ticker.NullLocator())


def _legend(axes):
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0, handlelength=2.6)


def throughput(plt, samples, facts):
    figure, axes = plt.subplots(figsize=(7.2, 4.6))
    _depth_axis(axes, samples)
    axes.set_yscale("log")
    for store, sync in samples.configurations():
        colour = COLOURS[store, sync]
        axes.plot(*_line(samples, "node", store, sync, "per_s"), color=colour, marker="o", linewidth=2.2,
                  label=f"storage node: {describe(store, sync)}")
        axes.plot(*_line(samples, "writer", store, sync, "per_s"), color=colour, linestyle="--", linewidth=1.3,
                  label=f"in-process writer: {describe(store, sync)}")
    axes.plot(*_line(samples, "exchange", None, None, "per_s"), color=FLOOR_COLOURS["exchange"], linestyle=":",
              linewidth=1.8, label="empty exchange on the stream")
    axes.plot(*_line(samples, "fdatasync", None, None, "per_s"), color=FLOOR_COLOURS["fdatasync"], linestyle="-.",
              linewidth=1.3, label="append + fdatasync of a plain file")
    if TARGET_DEPTH in samples.depths():
        axes.plot([TARGET_DEPTH], [TARGET_PER_S], marker="_", markersize=22, markeredgewidth=2.5, color="#cc79a7",
                  linestyle="none", label=f"target, synced: {TARGET_PER_S:,}/s at {TARGET_DEPTH}")
    axes.yaxis.set_major_formatter(_rate)
    axes.set_ylabel("records per second")
    axes.set_title("Throughput of the log, with its floors")
    _legend(axes)
    _caption(figure, facts)
    return figure


def latency(plt, samples, facts):
    figure, axes = plt.subplots(figsize=(7.2, 4.6))
    _depth_axis(axes, samples)
    axes.set_yscale("log")
    for store, sync in samples.configurations():
        colour = COLOURS[store, sync]
        depths, middle = _line(samples, "node", store, sync, "p50_us")
        _, high = _line(samples, "node", store, sync, "p99_us")
        axes.plot(depths, middle, color=colour, marker="o", linewidth=2.2,
                  label=f"storage node, p50: {describe(store, sync)}")
        axes.plot(depths, high, color=colour, marker="^", markersize=4, linestyle="--", linewidth=1.1,
                  label=f"storage node, p99: {describe(store, sync)}")
    exchange = dict(zip(*_line(samples, "exchange", None, None, "p50_us")))
    disk = dict(zip(*_line(samples, "fdatasync", None, None, "p50_us")))
    axes.plot(exchange.keys(), exchange.values(), color=FLOOR_COLOURS["exchange"], linestyle=":", linewidth=1.8,
              label="empty exchange, p50")
    axes.plot(disk.keys(), disk.values(), color=FLOOR_COLOURS["fdatasync"], linestyle="-.", linewidth=1.3,
              label="append + fdatasync, p50")
    if any(has_sync(*configuration) for configuration in samples.configurations()):
        both = [(depth, exchange[depth] + disk[depth]) for depth in exchange if depth in disk]
        axes.plot(*zip(*both), color="#999999", linewidth=5, alpha=0.45, zorder=0.5,
                  solid_capstyle="round",
                  label="sum of the two, p50: floor of the synced node")
    _time_axis(axes.yaxis)
    axes.set_ylabel("time from request to answer")
    axes.set_title("Latency of a vote, with its floors")
    _legend(axes)
    _caption(figure, facts)
    return figure


def burst_figure(plt, burst, facts):
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.0), gridspec_kw={"wspace": 0.24})
    delay = burst["delay_ms"]
    points = [(low / 1e3, share * 100) for low, share in cumulative(burst["each"]["buckets"])]
    left.step([points[0][0], *(low for low, _ in points)], [0, *(share for _, share in points)], where="post",
              color=COLOURS["rocksdb", "on"], linewidth=2.2)
    left.axvline(delay, color="#777777", linestyle=":", linewidth=1.8)
    left.axvline(TARGET_BURST_MS, color="#cc79a7", linestyle="--", linewidth=1.8)
    left.set_xlim(min(delay, points[0][0]) - 7, max(TARGET_BURST_MS, points[-1][0]) + 3)
    left.set_ylim(0, 114)
    left.set_yticks(range(0, 101, 25), [f"{share} %" for share in range(0, 101, 25)])
    left.annotate(f"injected: {delay:g} ms", (delay, 107), xytext=(-4, 0), textcoords="offset points", ha="right",
                  va="center", color="#555555", fontsize=9)
    left.annotate(f"target: {TARGET_BURST_MS:g} ms", (TARGET_BURST_MS, 107), xytext=(-4, 0),
                  textcoords="offset points", ha="right", va="center", color="#a8497f", fontsize=9)
    left.set_xlabel("ms after the burst was sent")
    left.set_ylabel(f"appends answered ({burst['rounds']} bursts)")
    left.set_title(f"{burst['burst']} appends at once")
    _others(right, burst)
    _caption(figure, facts)
    return figure


def _others(axes, burst):
    """The distributions of reads and unary calls, beside a burst and without one."""
    styles = {"quiet": ("-", "no burst under way"), "burst": ("--", "during a burst")}
    colours = {"reads": ("#009e73", "READ, other stream"), "stats": ("#d55e00", "unary Stats, connecting included")}
    for name, (colour, what) in colours.items():
        for when, (line, label) in styles.items():
            if burst[name][when]["count"] == 0:
                continue
            lows, shares = zip(*cumulative(burst[name][when]["buckets"]))
            axes.step(lows, [share * 100 for share in shares], where="post", color=colour, linestyle=line,
                      linewidth=1.8, label=f"{what}: {label}")
    axes.axvline(burst["delay_ms"] * 1e3, color="#777777", linestyle=":", linewidth=1.8, label="injected delay")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(_time)
    axes.set_ylim(0, 102)
    axes.set_yticks(range(0, 101, 25), [f"{share} %" for share in range(0, 101, 25)])
    axes.set_xlabel("time from request to answer")
    axes.set_ylabel("answered")
    axes.set_title("Others, meanwhile")
    axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0)

"""The fixed words and the looks of report.html."""

INTRODUCTION = (
    "A transaction that touched several nodes must commit on all of them or on none. In <b>two-phase commit</b> the nodes "
    "log their votes, then the coordinator logs the decision, and only then may the caller be told: two log writes, one "
    "after the other. In <b>Cornus</b> the logged votes <i>are</i> the decision, since the storage lets anybody write "
    "&ldquo;abort&rdquo; into a silent node's log, atomically, once and for all; so the caller waits for one log write. "
    "Where the log is far away or slow, that is half of the wait.")

CAPTIONS = {
    "latency": "Measured latency, from a transaction's begin to its caller's answer, with 95 % confidence over the trials. "
               "The broad pale line is what the simple model says from the floors of this run: execution, one round trip, and "
               "one log write (Cornus) or two (2PC).",
    "breakdown": "The same mean, taken apart. <i>Execution</i> runs from begin to the start of the commit. <i>Prepare</i> "
                 "lasts until all votes are known, which holds one log write in either protocol. <i>Commit</i> lasts until "
                 "the caller's answer: in 2PC the decision's log write, in Cornus nothing to wait for. Attempts that were "
                 "aborted and run again count as well.",
    "throughput": "Committed transactions of the whole cluster. In a closed loop a shorter latency is a higher throughput, "
                  "unless something else (the CPU, conflicts) is the limit: then measured values fall below the pale "
                  "line, which is workers divided by the model's latency.",
}

TERMS = """<dl>
<dt>distributed transaction</dt><dd>one that touched rows of another node than the coordinator's</dd>
<dt>coordinator</dt><dd>the node where the transaction began; it answers the caller</dd>
<dt>injected log delay</dt><dd>waited by a storage node before it takes up a log write; stands in for a log far away</dd>
<dt>mean, p50, p90, p99, p99.9</dt><dd>of the latencies of all committed transactions in the measured window; percentiles
err by at most 1.6 %, upwards</dd>
<dt>last lock freed</dt><dd>from begin until no node holds a lock of the transaction any more</dd>
<dt>worker occupied</dt><dd>for how long the transaction kept its worker from beginning another</dd>
<dt>forced log write</dt><dd>one that is on disk before anything else happens; the others may ride along</dd>
<dt>trial</dt><dd>one run on a fresh cluster with fresh data; trials of the protocols follow each other in turn, so that a
drift of the machine meets both</dd>
</dl>"""

STYLE = """
:root { color-scheme: light; }
body { margin: 0; background: #fff; color: #1c1c1c; font: 16px/1.5 system-ui, "DejaVu Sans", sans-serif; }
main { max-width: 70rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: .5rem 0 1rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .5rem; border-bottom: 1px solid #ddd; padding-bottom: .25rem; }
h3 { font-size: 1.05rem; margin: 1.8rem 0 .4rem; }
.headline { font-size: 1.15rem; border-left: 4px solid #0072b2; padding: .3rem 0 .3rem .9rem; margin: .8rem 0; }
.alarm { border-left: 4px solid #d55e00; background: #fdf1e8; padding: .5rem .9rem; font-weight: 600; }
.run { color: #333; }
.note, figcaption { font-size: .87rem; color: #555; }
figure { margin: 1.6rem 0; }
figure img { max-width: 100%; height: auto; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; margin: .6rem 0; }
th, td { padding: .28rem .6rem; border-bottom: 1px solid #e6e6e6; text-align: left; vertical-align: bottom; }
th { border-bottom: 2px solid #bbb; font-weight: 600; }
.n { text-align: right; font-variant-numeric: tabular-nums; }
td.n { white-space: nowrap; }
table.main td:nth-child(2) { font-weight: 700; }
table.facts td:first-child { color: #555; white-space: nowrap; }
table.facts thead { display: none; }
pre { background: #f6f6f6; padding: .8rem 1rem; overflow-x: auto; font-size: .85rem; }
dt { font-weight: 600; }
dd { margin: 0 0 .4rem 1.2rem; }
"""

"""A results folder as its readers want it: by protocol and swept value, over trials, with confidence intervals."""

import json
import math
import os
from dataclasses import dataclass

from dogwood_lib import experiment
from dogwood_lib.errors import AskedWrongly
from dogwood_lib.experiment import text_of
from dogwood_lib.experiment_keys import KEYS, Number, Whole
from dogwood_lib.summary import PARTS, column_of, read_rows

# Student's t, 97.5 %, by degrees of freedom.
T_975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
         2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042)
T_LIMIT = 1.96

TITLES = {
    "log_delay_ms": "injected log delay (ms)", "log_delay_dist": "distribution of the log delay",
    "log_delay_param": "parameter of the log delay", "compute_nodes": "compute nodes", "storage_nodes": "storage nodes",
    "threads": "workers per node", "loop": "loop", "rate_tps": "offered load (transactions/s)", "sync": "log synced",
    "batch_accesses": "accesses batched", "seed": "seed", "duration_s": "duration (s)", "warmup_s": "warm-up (s)",
    "ycsb.records": "rows per node", "ycsb.record_bytes": "bytes per row", "ycsb.accesses": "accesses per transaction",
    "ycsb.read_pct": "share of reads (%)", "ycsb.distributed_pct": "distributed transactions (%)",
    "ycsb.remote_access_pct": "remote accesses (%)", "ycsb.theta": "skew θ of the accesses",
}
PROTOCOL_NAMES = {"cornus": "Cornus", "2pc": "2PC"}


def title_of(key):
    return TITLES.get(key, key)


def protocol_name(protocol):
    return PROTOCOL_NAMES.get(protocol, protocol)


def t_975(freedom):
    return T_975[freedom - 1] if freedom <= len(T_975) else T_LIMIT


@dataclass(frozen=True)
class Estimate:
    """A mean over trials; `half` is half the 95 % confidence interval, None with fewer than two trials."""
    mean: float
    half: float = None
    count: int = 1


def estimate(values):
    """None if no trial has a value."""
    values = [value for value in values if value is not None]
    if not values:
        return None
    count = len(values)
    mean = sum(values) / count
    if count < 2:
        return Estimate(mean)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (count - 1))
    return Estimate(mean, t_975(count - 1) * deviation / math.sqrt(count), count)


class Point:
    """The trials of one protocol at one combination of values."""

    def __init__(self, protocol, rows):
        self.protocol = protocol
        self.rows = rows

    def of(self, name):
        """The Estimate of a column, or None."""
        return estimate([row[name] for row in self.rows])

    def mean(self, name):
        found = self.of(name)
        return None if found is None else found.mean

    def best(self):
        """The trial with the best throughput: the paper's rule, which chooses one of five."""
        return max(self.rows, key=lambda row: row["throughput_tps"])

    def model_tps(self):
        """What a closed loop reaches if distributed transactions take what the model says; None in an open loop."""
        first = self.rows[0]
        model, local = self.mean("model_dist_mean_us"), self.mean("local_mean_us") or 0
        if first["loop"] != "closed" or model is None:
            return None
        share = sum(row["dist_committed"] for row in self.rows) / sum(row["committed"] for row in self.rows)
        return first["compute_nodes"] * first["threads"] * 1e6 / (share * model + (1 - share) * local)


class Results:
    """What a folder holds. `x_key` is the swept key along which figures run, None if nothing but the protocol is swept;
    `facets` are the combinations of what else is swept, [{}] if nothing."""

    def __init__(self, path):
        self.path = path
        try:
            self.rows = read_rows(path)
            with open(os.path.join(path, "meta.json"), encoding="utf-8") as file:
                self.meta = json.load(file)
            self.plan = experiment.load(os.path.join(path, "config.toml"))
        except (OSError, ValueError, KeyError) as error:
            raise AskedWrongly(f"{path} is no results folder of `dogwood run`: {error}") from error
        if not self.rows:
            raise AskedWrongly(f"{path}/summary.csv holds no trial")
        self.protocols = [name for name in self.plan.values["protocol"]]
        self.swept = [key for key in self.plan.swept() if key != "protocol"]
        self.x_key = self._choose_x()
        others = [key for key in self.swept if key != self.x_key]
        self.facets = _distinct([{key: self.value(row, key) for key in others} for row in self.rows])

    @staticmethod
    def value(row, key):
        return row[key] if key in row else row[column_of(key)]

    def _choose_x(self):
        """The number with the most values; a seed is no quantity."""
        numbers = [key for key in self.swept if isinstance(KEYS[key][0], (Whole, Number)) and key != "seed"]
        candidates = numbers or self.swept
        return max(candidates, key=lambda key: (len(self.plan.values[key]), key == "log_delay_ms"), default=None)

    def x_is_number(self):
        return self.x_key is not None and isinstance(KEYS[self.x_key][0], (Whole, Number)) and self.x_key != "seed"

    def x_values(self, facet):
        """Those that occur; numbers rising, others in the order given. [None] if nothing is swept."""
        if self.x_key is None:
            return [None]
        values = _distinct([self.value(row, self.x_key) for row in self._rows(facet)])
        return sorted(values, key=lambda value: (value is not None, value)) if self.x_is_number() else values

    def _rows(self, facet):
        return [row for row in self.rows if all(self.value(row, key) == value for key, value in facet.items())]

    def point(self, facet, protocol, x):
        """A Point, or None if there is no such trial."""
        rows = [row for row in self._rows(facet) if row["protocol"] == protocol
                and (self.x_key is None or self.value(row, self.x_key) == x)]
        return Point(protocol, rows) if rows else None

    def series(self, facet, protocol):
        """[(x, Point)] of one protocol."""
        found = [(x, self.point(facet, protocol, x)) for x in self.x_values(facet)]
        return [(x, point) for x, point in found if point is not None]

    def ratio(self, facet, x, name="dist_mean_us"):
        """2PC over Cornus, trial by trial, since the two ran one after the other; None without both."""
        cornus, other = self.point(facet, "cornus", x), self.point(facet, "2pc", x)
        if cornus is None or other is None:
            return None
        mine = {row["trial"]: row[name] for row in cornus.rows}
        return estimate([row[name] / mine[row["trial"]] for row in other.rows
                         if row[name] is not None and mine.get(row["trial"])])

    def facet_text(self, facet):
        return ", ".join(f"{title_of(key)} {text_of(value)}" for key, value in facet.items())

    def facet_slug(self, facet):
        return "".join(f"-{key}-{text_of(value)}" for key, value in facet.items()).replace("/", "-")

    def has_breakdown(self):
        return any(row[f"dist_{PARTS[0]}_us"] is not None for row in self.rows)


def _distinct(values):
    found = []
    for value in values:
        if value not in found:
            found.append(value)
    return found

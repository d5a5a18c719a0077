"""The keys of an experiment: types, defaults, ranges. docs/experiments.md tells what each means."""

import json
import math
from dataclasses import dataclass

from dogwood_lib.arguments import nearest, quote
from dogwood_lib.errors import AskedWrongly

LARGEST = 2**63 - 1  # TOML's whole numbers

PROTOCOLS = ("cornus", "2pc")
DISTRIBUTIONS = ("constant", "uniform", "exponential", "lognormal")

# With these the times that a log write takes stray far from the mean, so time-outs that follow the mean get more room.
HEAVY_TAILED = ("exponential", "lognormal")


def spell(value):
    """A value as TOML has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(map(spell, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return number_text(value) if isinstance(value, (int, float)) else str(value)


def number_text(value):
    """Shortest exact text; 4.0 is 4."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return repr(value)


@dataclass(frozen=True)
class Whole:
    low: int
    high: int

    def accepts(self, value):
        return isinstance(value, int) and not isinstance(value, bool) and self.low <= value <= self.high

    def allowed(self):
        return f"a whole number from {self.low} to {self.high}"


@dataclass(frozen=True)
class Number:
    low: float
    high: float

    def accepts(self, value):
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) \
            and self.low <= value <= self.high

    def allowed(self):
        return f"a number from {number_text(self.low)} to {number_text(self.high)}"


@dataclass(frozen=True)
class Word:
    words: tuple

    def accepts(self, value):
        return isinstance(value, str) and value in self.words

    def allowed(self):
        return "one of " + ", ".join(map(quote, self.words))


@dataclass(frozen=True)
class Truth:
    def accepts(self, value):
        return isinstance(value, bool)

    def allowed(self):
        return "true or false"


@dataclass(frozen=True)
class Name:
    """A folder's name, and part of a run id."""

    def accepts(self, value):
        return isinstance(value, str) and 0 < len(value) <= 40 and value[0].isalnum() and value.isascii() \
            and all(letter.isalnum() or letter in "._-" for letter in value)

    def allowed(self):
        return "up to 40 letters, digits, dots, underscores, dashes, the first a letter or digit"


ABSENT = None

# Key -> (type, default). A key with a dot lies in the table before it.
KEYS = {
    "name": (Name(), ABSENT),
    "workload": (Word(("ycsb",)), "ycsb"),
    "protocol": (Word(PROTOCOLS), list(PROTOCOLS)),
    "compute_nodes": (Whole(1, 64), 2),
    "storage_nodes": (Whole(1, 64), 2),
    "threads": (Whole(1, 1024), 4),
    "log_delay_ms": (Number(0, 60000), 0),
    "log_delay_dist": (Word(DISTRIBUTIONS), "constant"),
    "log_delay_param": (Number(0, 60000), ABSENT),
    "loop": (Word(("closed", "open")), "closed"),
    "rate_tps": (Number(0.001, 1e9), ABSENT),
    "duration_s": (Number(0.1, 86400), 10),
    "warmup_s": (Number(0, 3600), 2),
    "trials": (Whole(1, 1000), 3),
    "seed": (Whole(0, LARGEST), 1),
    "sync": (Truth(), True),
    "batch_accesses": (Truth(), True),
    "vote_timeout_ms": (Whole(1, 600000), ABSENT),
    "decision_timeout_ms": (Whole(1, 600000), ABSENT),
    "vote_request_timeout_ms": (Whole(1, 600000), ABSENT),
    "request_timeout_ms": (Whole(1, 600000), ABSENT),
    "retry_backoff_us": (Whole(0, 10_000_000), 1000),
    "ycsb.records": (Whole(1, 1_000_000_000), 100_000),
    "ycsb.record_bytes": (Whole(1, 12800), 1000),
    "ycsb.accesses": (Whole(1, 128), 16),
    "ycsb.read_pct": (Number(0, 100), 50),
    "ycsb.distributed_pct": (Number(0, 100), 100),
    "ycsb.remote_access_pct": (Number(0, 100), 50),
    "ycsb.theta": (Number(0, 100), 0.0),
}
TABLES = sorted({key.split(".")[0] for key in KEYS if "." in key})
TIMEOUTS = ("vote_timeout_ms", "decision_timeout_ms", "vote_request_timeout_ms", "request_timeout_ms")
# What concerns the experiment as a whole.
NO_SWEEP = ("name", "trials")


def default_timeout_ms(delay_ms, distribution):
    """Ten times the mean log delay, twenty where the tail is heavy, but a second at least: a disk that now and then needs
    100 ms for a sync mustn't abort what is only slow."""
    factor = 20 if distribution in HEAVY_TAILED else 10
    return max(1000, math.ceil(factor * delay_ms))


def refuse_unknown(where, key):
    """Raises with the nearest known key, whatever table it lies in."""
    leaf = key.split(".")[-1]
    same_leaf = [known for known in KEYS if known.split(".")[-1] == leaf]
    hint = f", did you mean {quote(same_leaf[0])}?" if same_leaf else nearest(key, list(KEYS))
    if not hint:
        hint = nearest(leaf, [known.split(".")[-1] for known in KEYS])
    raise AskedWrongly(f"{where}: unknown key {quote(key)}{hint or '; docs/experiments.md lists the keys'}")


def check_value(where, key, value):
    kind = KEYS[key][0]
    if not kind.accepts(value):
        hint = nearest(value, kind.words) if isinstance(kind, Word) and isinstance(value, str) else ""
        shown = "a table" if isinstance(value, dict) else spell(value)
        raise AskedWrongly(f"{where}: {key} = {shown} is not accepted; give {kind.allowed()}{hint}")


def check_values(where, key, value):
    """A value, or a list of them: a sweep. Returns the list."""
    if not isinstance(value, list):
        check_value(where, key, value)
        return [value]
    if key in NO_SWEEP:
        raise AskedWrongly(f"{where}: {key} cannot be a list; give {KEYS[key][0].allowed()}")
    if not value:
        raise AskedWrongly(f"{where}: {key} = [] holds nothing; give values, or leave the key out")
    for position, one in enumerate(value):
        check_value(where, key, one)
        if one in value[:position]:
            raise AskedWrongly(f"{where}: {key} names {spell(one)} twice; name it once (trials repeats all)")
    return list(value)

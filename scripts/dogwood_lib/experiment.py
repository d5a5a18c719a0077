"""An experiment: the file that describes it, what the command line overrides, and the points that it spans."""

import itertools
import os
import re
import tomllib

from dogwood_lib.arguments import quote
from dogwood_lib.errors import AskedWrongly
from dogwood_lib.experiment_keys import (KEYS, NO_SWEEP, TABLES, TIMEOUTS, check_values, default_timeout_ms, number_text,
                                         refuse_unknown, spell)

COMMAND_LINE = "-s"


def read_file(path):
    """The tables of a TOML file."""
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise AskedWrongly(f"{path}: {error.strerror}; give the path of an experiment, e.g. "
                           f"scripts/experiments/quickstart.toml") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        text = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "not UTF-8"
        raise AskedWrongly(f"{path}: broken TOML: {text}; mend that line") from error


def flatten(where, tables):
    """Nested tables as flat keys, e.g. "ycsb.theta"; refuses what isn't known."""
    flat = {}
    for key, value in tables.items():
        if key in TABLES:
            if not isinstance(value, dict):
                raise AskedWrongly(f"{where}: {key} is a table; write its keys below [{key}]")
            flat.update({f"{key}.{inner}": one for inner, one in value.items()})
        else:
            flat[key] = value
    for key in flat:
        if key not in KEYS:
            refuse_unknown(where, key)
    return flat


def parse_override(text):
    """(key, value) of -s key=value. The value is TOML; a word that isn't stands for itself."""
    key, sign, written = text.partition("=")
    key, written = key.strip(), written.strip()
    if not sign or not key or not written:
        raise AskedWrongly(f"{COMMAND_LINE} {spell(text)}: give key=value, e.g. -s threads=8 or -s 'log_delay_ms=[0, 4]'")
    if key not in KEYS:
        refuse_unknown(COMMAND_LINE, key)
    try:
        parsed = tomllib.loads(f"value = {written}")
    except tomllib.TOMLDecodeError:
        parsed = None
    if parsed is not None and list(parsed) == ["value"]:
        return key, parsed["value"]
    if re.fullmatch(r"[\w.+-]+", written, re.ASCII):
        return key, written
    raise AskedWrongly(f"{COMMAND_LINE} {spell(text)}: {spell(written)} is no TOML value; quote strings, put lists in []")


class Experiment:
    """Checked through and through when it exists.

    `values` are lists by flat key: one value, or those that are swept; a key that may be absent has [None]."""

    def __init__(self, name, where, given):
        self.name = name
        self.values = {}
        for key, (_, default) in KEYS.items():
            value = given.get(key, default)
            # A default is right by construction, and may be absent.
            self.values[key] = [None] if value is None else check_values(where.get(key, ""), key, value)
        self.values["name"] = [name]
        self.given = set(given)
        self.where = where
        self.trials = self.values["trials"][0]
        self.points = self._points()
        self._check_use()

    def swept(self):
        """The keys with several values, in the order of KEYS."""
        return [key for key, values in self.values.items() if len(values) > 1]

    def _points(self):
        """One dict for each combination; the protocol varies fastest. What makes no difference at a point is None, so
        that points which differ only in it are one."""
        order = [key for key in KEYS if key != "protocol"] + ["protocol"]
        points = []
        for combination in itertools.product(*(self.values[key] for key in order)):
            point = dict(zip(order, combination))
            if point["loop"] == "closed":
                point["rate_tps"] = None
            for key in TIMEOUTS:
                if point[key] is None:
                    point[key] = default_timeout_ms(point["log_delay_ms"], point["log_delay_dist"])
            self._check_point(point)
            if point not in points:
                points.append(point)
        return points

    def _fail(self, key, text):
        raise AskedWrongly(f"{self.where.get(key, self.where[''])}: {text}")

    def _check_point(self, point):
        delay = point["log_delay_ms"]
        for key in TIMEOUTS:
            if point[key] < delay:
                default = default_timeout_ms(delay, point["log_delay_dist"])
                self._fail(key, f"{key} = {point[key]} is below log_delay_ms = {number_text(delay)}, so no log write could "
                                f"be in time; give {default} or leave it out")
        self._check_delay_param(point)
        if point["ycsb.records"] < point["ycsb.accesses"]:
            self._fail("ycsb.records", f"ycsb.records = {point['ycsb.records']} is below ycsb.accesses = "
                                       f"{point['ycsb.accesses']}, and a transaction accesses different rows; give more")
        if point["loop"] == "open" and point["rate_tps"] is None:
            self._fail("loop", 'loop = "open" needs rate_tps, the transactions a second of the whole cluster; give it')

    def _check_delay_param(self, point):
        value, distribution = point["log_delay_param"], point["log_delay_dist"]
        if value is None:
            return
        if distribution in ("constant", "exponential"):
            self._fail("log_delay_param", f"log_delay_param means nothing with log_delay_dist = {quote(distribution)}; "
                                          f"leave it out, or choose uniform or lognormal")
        high = point["log_delay_ms"] if distribution == "uniform" else 3
        if value > high:
            what = "the half width in ms" if distribution == "uniform" else "sigma of the logarithm"
            self._fail("log_delay_param", f"log_delay_param = {number_text(value)} is not accepted with {distribution} at "
                                          f"log_delay_ms = {number_text(point['log_delay_ms'])}; give {what}, 0 to "
                                          f"{number_text(high)}")

    def _check_use(self):
        """A key that no point uses is a misunderstanding."""
        if "rate_tps" in self.given and self.values["loop"] == ["closed"]:
            self._fail("rate_tps", 'rate_tps means nothing with loop = "closed"; leave it out, or set loop = "open"')

    def to_toml(self):
        """The effective experiment; running it again spans the same points. What follows the log delay is commented."""
        lines = []
        table = ""
        for key, values in self.values.items():
            head, _, leaf = key.rpartition(".")
            if head != table:
                table = head
                lines += ["", f"[{table}]"]
            if values == [None]:
                note = "" if key not in TIMEOUTS else ": " + self._timeouts_text(key)
                lines.append(f"# {leaf} is not given{note}")
            else:
                lines.append(f"{leaf} = {spell(values if len(values) > 1 else values[0])}")
        return "\n".join(lines) + "\n"

    def _timeouts_text(self, key):
        found = sorted({(point["log_delay_ms"], point[key]) for point in self.points})
        if len({timeout for _, timeout in found}) == 1:
            return f"{found[0][1]} ms"
        return ", ".join(f"{timeout} ms at {number_text(delay)} ms log delay" for delay, timeout in found)

    def label(self, point):
        """What tells a point from the others, e.g. "cornus log_delay_ms=4"."""
        keys = [key for key in self.swept() if key != "protocol"]
        parts = [f"{key}={text_of(point[key])}" for key in keys if point[key] is not None]
        return " ".join([point["protocol"], *parts])

    def slug(self, point, trial):
        """The same for file names, e.g. "cornus-log_delay_ms-4-t1"."""
        return re.sub(r"[^A-Za-z0-9._-]", "-", self.label(point)) + f"-t{trial}"

    def schedule(self):
        """(point, trial) in the order of running. All points once, then again: a drift of the machine meets all alike.
        Protocols are neighbours, and their order turns with each trial."""
        runs = []
        for trial in range(1, self.trials + 1):
            for _, group in itertools.groupby(self.points, key=lambda point: {**point, "protocol": None}):
                same = list(group)
                runs += [(point, trial) for point in (same if trial % 2 else same[::-1])]
        return runs


def text_of(value):
    """A value in a table or a label."""
    if value is None:
        return ""
    return value if isinstance(value, str) else spell(value)


def load(path, overrides=()):
    """The experiment of a file with the overrides of the command line. Raises AskedWrongly with one line."""
    given = flatten(path, read_file(path))
    where = {"": path, **{key: path for key in KEYS}}
    for text in overrides:
        key, value = parse_override(text)
        given[key] = value
        where[key] = f"{COMMAND_LINE} {text}"
    if "name" not in given:
        given["name"] = re.sub(r"[^A-Za-z0-9._-]", "-", os.path.splitext(os.path.basename(path))[0])
    check_values(where["name"], "name", given["name"])
    return Experiment(given["name"], where, given)


def default_experiment(overrides=()):
    """Defaults and overrides alone, without a file."""
    where = {"": COMMAND_LINE, **{key: COMMAND_LINE for key in KEYS}}
    given = dict(parse_override(text) for text in overrides)
    return Experiment(given.get("name", "cluster"), where, given)


assert all(key in KEYS for key in (*NO_SWEEP, *TIMEOUTS))

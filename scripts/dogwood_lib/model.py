"""The simple model of a commit, and the floors that it takes from the same run.

    mean latency = measured execution + 1 empty round trip + k log writes        k: 1 in Cornus, 2 in two-phase commit
    log write    = mean injected delay + 1 empty round trip + 1 write to the log

docs/results.md tells what the model leaves out."""

import os
import shutil
import tempfile

from dogwood_lib.errors import EnvironmentFailure
from dogwood_lib.processes import Fleet
from dogwood_lib.programs import find_program

FLOOR_PROGRAMS = ("dogwood-bench-stream", "dogwood-bench-log", "dogwood-bench-writer")
# One after another, before the caller's answer: docs/design.md, section 3.
LOG_WRITES = {"cornus": 1, "2pc": 2}
SECONDS = 1.0
REDO_BYTES = 512


def log_write_us(point, floors):
    """From sending a record to the answer."""
    return point["log_delay_ms"] * 1000 + floors["round_trip_us"] + floors["log_append_us"][write_name(point["sync"])]


def write_name(sync):
    return "sync" if sync else "no_sync"


def model_us(point, execution_us, floors):
    """The mean latency of a distributed transaction, or None if a floor is missing."""
    if not floors or execution_us is None or write_name(point["sync"]) not in floors["log_append_us"]:
        return None
    count = LOG_WRITES[point["protocol"]]
    return execution_us + floors["round_trip_us"] + count * log_write_us(point, floors)


def combine(rounds):
    """The floors of a run from those of its rounds: means, but for what the rounds have in common."""
    if not rounds:
        return None
    return {name: _mean([one[name] for one in rounds]) for name in rounds[0]}


def _mean(values):
    if isinstance(values[0], dict):
        return {name: _mean([value[name] for value in values]) for name in values[0]}
    return values[0] if isinstance(values[0], int) else sum(values) / len(values)


def measure(experiment, build, data, log_dir):
    """One round of floors: what one exchange of empty messages and one append to an empty log take with nothing beside
    them. Means, since the model is of a mean, and their percentiles to look at.

    As many logs are written at once as the experiment has storage nodes, since on one machine they share its disk.
    """
    stream, client, writer = (find_program(name, build) for name in FLOOR_PROGRAMS)
    writers = max(experiment.values["storage_nodes"])
    with Fleet(log_dir) as fleet:
        echo = fleet.start("floor-exchange", [stream, "--listen", "127.0.0.1:0"])
        line = fleet.run_tool([client, "--connect", echo.address, "--run-id", "bench-stream", "--depths", "1",
                               "--seconds", str(SECONDS)], 30)[-1]
    floors = {"round_trip_us": 1e6 / line["per_s"], "round_trip_p50_us": line["p50_us"],
              "round_trip_p99_us": line["p99_us"], "log_append_us": {}, "log_append_p50_us": {},
              "log_append_p99_us": {}, "writers": writers, "redo_bytes": REDO_BYTES}
    for sync in experiment.values["sync"]:
        lines = _append(writer, sync, writers, data, log_dir)
        name = write_name(sync)
        floors["log_append_us"][name] = sum(1e6 / line["records_per_s"] for line in lines) / writers
        for percentile in ("p50_us", "p99_us"):
            floors[f"log_append_{percentile}"][name] = sum(line[percentile] for line in lines) / writers
    return floors


def _append(writer, sync, writers, data, log_dir):
    """What each of the writers printed."""
    folder = tempfile.mkdtemp(prefix="floor-", dir=data)
    try:
        commands = []
        for number in range(writers):
            path = os.path.join(folder, str(number))
            os.makedirs(path)
            commands.append([writer, "--data", path, "--service", "--sync", "on" if sync else "off", "--bytes",
                             str(REDO_BYTES), "--batches", "1", "--seconds", str(SECONDS)])
        with Fleet(log_dir) as fleet:
            results = fleet.run_tools(commands, 60)
    finally:
        shutil.rmtree(folder)
    if not all(results):
        raise EnvironmentFailure(f"{os.path.basename(writer)} printed nothing; build again with scripts/build")
    return [lines[-1] for lines in results]

"""A cluster that stays up in the background: the file that remembers it, and how it is stopped.

A keeper process holds the nodes; they die with it, and in order if it is asked with SIGTERM. Processes are known by id
and start time, so that one which got the id later is never taken for ours."""

import json
import os
import signal
import time

from dogwood_lib.errors import EnvironmentFailure
from dogwood_lib.processes import STOP_SECONDS
from dogwood_lib.programs import ROOT

FILE = "state.json"
DEFAULT_DIR = os.path.join(ROOT, "results", ".up")
PAUSE = 0.02


def folder(given):
    return os.path.abspath(given or DEFAULT_DIR)


def start_time(pid):
    """When a process began, in the kernel's ticks; None if it has gone or is only a zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def identity(pid):
    return {"pid": pid, "start_time": start_time(pid)}


def is_alive(process):
    """Whether the process with that "pid" and "start_time" is running."""
    return process["start_time"] is not None and start_time(process["pid"]) == process["start_time"]


def load(path):
    """What `up` wrote there, or None."""
    try:
        with open(os.path.join(path, FILE), encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise EnvironmentFailure(f"{os.path.join(path, FILE)} is damaged: {error}; stop the nodes by hand and remove "
                                 f"{path}") from error


def save(path, state):
    """Whole or not at all."""
    temporary = os.path.join(path, FILE + ".tmp")
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(state, file, indent=2)
    os.rename(temporary, os.path.join(path, FILE))


def send(process, number):
    """A signal, unless it has ended. The descriptor pins the process between the look and the signal."""
    try:
        descriptor = os.pidfd_open(process["pid"])
    except ProcessLookupError:
        return
    try:
        if is_alive(process):
            signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        pass
    finally:
        os.close(descriptor)


def stop(keeper, seconds=2 * STOP_SECONDS + 5):
    """Asks the keeper and waits until it has gone; after the bound it is killed, and its nodes with it. False: killed."""
    send(keeper, signal.SIGTERM)
    deadline = time.monotonic() + seconds
    while is_alive(keeper) and time.monotonic() < deadline:
        time.sleep(PAUSE)
    if not is_alive(keeper):
        return True
    send(keeper, signal.SIGKILL)
    return False

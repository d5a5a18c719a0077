"""`dogwood doctor`: looks for what would keep a cluster from running on this machine, or its figures from meaning
something. One line for each check: ok, or not ok with the mend."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from dogwood_lib import cluster, machine, model, state
from dogwood_lib.bench_log_figures import require
from dogwood_lib.errors import ENVIRONMENT, GOOD, Failure
from dogwood_lib.programs import ROOT, build_dir, find_program
from dogwood_lib.table import format_us

MIN_FREE_GB = 5
MIN_MEMORY_MIB = 2048
SLOW_SYNC_US = 5000
# A disk that answers a sync faster than this doesn't write anything down.
FAST_SYNC_US = 20
SYNCS = 100
NODE_NAMES = ("dogwood-compute", "dogwood-storage")


class Wrong(Exception):
    """Not ok; the text names the mend."""


def add_arguments(parser):
    parser.add_argument("--build", metavar="DIR", help="build folder; default $DW_BUILD_DIR or build/")
    parser.add_argument("--dir", metavar="DIR", help="where results are to be written; default results/")


def check_python():
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < (3, 11):
        raise Wrong(f"Python {version} is too old: 3.11 reads TOML; install python3 of Debian 12")
    require()
    return f"Python {version} with matplotlib"


def check_packages():
    if shutil.which("dpkg-query") is None:
        return "not a Debian system; scripts/packages --list names what is needed"
    wanted = subprocess.run([os.path.join(ROOT, "scripts", "packages"), "--list", "build", "plot"], capture_output=True,
                            text=True, check=True).stdout.split()
    known = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *wanted], capture_output=True,
                           text=True, check=False).stdout.splitlines()
    missing = sorted(set(wanted) - {line.split()[0] for line in known if line.endswith(" installed")})
    if missing:
        raise Wrong(f"missing: {' '.join(missing)}; scripts/packages installs them")
    return f"{len(wanted)} installed"


def check_build(build):
    for name in (*cluster.PROGRAMS, *model.FLOOR_PROGRAMS):
        find_program(name, build)
    facts = machine.compiler(build)
    if facts["sanitizer"]:
        raise Wrong(f"{build} is a sanitizer build ({facts['sanitizer']}), many times slower; run scripts/build")
    if facts["build_type"] == "Debug":
        raise Wrong(f"{build} is a Debug build, which measures nothing; run scripts/build")
    return f"{build} ({facts['build_type'] or 'type unknown'})"


def check_ports():
    addresses = cluster.free_addresses(8)
    host, port = addresses[0].split(":")
    with socket.socket() as server, socket.socket() as client:
        server.bind((host, int(port)))
        server.listen()
        client.settimeout(2)
        client.connect((host, int(port)))
    return "loopback has free ports and connects"


def check_space(folder):
    free = shutil.disk_usage(folder).free / 1e9
    if free < MIN_FREE_GB:
        raise Wrong(f"{free:.1f} GB are free in {folder}, and a log grows by up to 1 GB a minute; make room for "
                    f"{MIN_FREE_GB} GB, or give another --dir")
    return f"{free:.0f} GB free in {folder}"


def check_memory():
    facts = machine.machine()
    if facts["memory_mib"] and facts["memory_mib"] < MIN_MEMORY_MIB:
        raise Wrong(f"{facts['memory_mib']} MiB of memory; the defaults need {MIN_MEMORY_MIB}, so lower ycsb.records")
    if facts["cores"] < 2:
        raise Wrong("one core: nodes wait for each other, so figures mean little; use a machine with two or more")
    return f"{facts['cores']} cores, {(facts['memory_mib'] or 0) / 1024:.0f} GiB of memory"


def sync_times_us(folder):
    """Of appends of 128 bytes to a new file, each synced; sorted."""
    times = []
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".doctor-") as file:
        for _ in range(SYNCS):
            begun = time.monotonic()
            os.write(file.fileno(), bytes(128))
            os.fdatasync(file.fileno())
            times.append((time.monotonic() - begun) * 1e6)
    return sorted(times)


def judge_sync(times, kind):
    """Of sorted times and a type of file system."""
    middle = times[len(times) // 2]
    text = f"append and fdatasync on {kind}: p50 {format_us(middle)}, p90 {format_us(times[len(times) * 9 // 10])}"
    if kind in ("tmpfs", "ramfs") or middle < FAST_SYNC_US:
        raise Wrong(f"{text}: nothing reaches a disk there, so sync = true measures little; give a --dir on a disk")
    if middle > SLOW_SYNC_US:
        raise Wrong(f"{text}: so slow a disk hides what the protocols cost; give another --dir, or set sync = false")
    return text


def check_sync(folder):
    return judge_sync(sync_times_us(folder), (machine.file_system(folder) or {}).get("type"))


def processes_named(names):
    """(pid, name) of programs that run on this machine."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        found += [(int(entry), name) for name in names
                  if any(os.path.basename(word).decode(errors="replace") == name for word in words[:2])]
    return sorted(found)


def check_strays():
    """Nodes die with their launcher; what runs is in use, or was started by hand."""
    running = processes_named(NODE_NAMES)
    kept = state.load(state.folder(None))
    ours = {node["pid"] for node in kept["nodes"] if state.is_alive(node)} if kept else set()
    strays = [(pid, name) for pid, name in running if pid not in ours]
    if strays:
        listed = ", ".join(f"{name} ({pid})" for pid, name in strays[:6])
        raise Wrong(f"running beside what you measure: {listed}; wait for its launcher, or end it with kill {strays[0][0]}")
    return f"the {len(ours)} nodes of scripts/dogwood up run; scripts/dogwood down stops them" if ours else "none runs"


def check_load():
    load = os.getloadavg()[0]
    if load > (os.cpu_count() or 1):
        raise Wrong(f"the load is {load:.1f} on {os.cpu_count()} cores; let the other work end before you measure")
    return f"{load:.1f} on {os.cpu_count()} cores"


def check_idle():
    """Not wrong either way: figures say how they were taken."""
    with machine.Awake() as awake:
        if awake.kept:
            return "idle processors can be kept awake while something is measured"
        return f"idle processors will sleep, which lengthens each exchange ({awake.why_not}); root can prevent that"


def checks(given):
    folder = os.path.abspath(given.dir or os.path.join(ROOT, "results"))
    # The nearest folder that is there: doctor makes none.
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return (("python", check_python), ("packages", check_packages),
            ("build", lambda: check_build(build_dir(given.build))), ("memory", check_memory), ("ports", check_ports),
            ("space", lambda: check_space(folder)), ("disk", lambda: check_sync(folder)), ("nodes", check_strays),
            ("load", check_load), ("idle", check_idle))


def run(given):
    good = True
    for name, check in checks(given):
        try:
            verdict, text = "ok    ", check()
        except (Wrong, Failure) as wrong:
            verdict, text, good = "not ok", str(wrong), False
        except OSError as error:
            verdict, text, good = "not ok", f"{error.filename or name}: {error.strerror}; mend that, and ask again", False
        print(f"{verdict}  {name:9} {text}", flush=True)
    return GOOD if good else ENVIRONMENT

"""What a figure was measured on: the content of meta.json."""

import os
import platform
import re
import resource
import subprocess
import time

from dogwood_lib.programs import ROOT


def _output(*command):
    """What a command prints, or None if it cannot tell."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def _find(pattern, path):
    """The first group of a pattern in a file, or None."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            match = re.search(pattern, file.read(), re.M)
    except OSError:
        return None
    return match.group(1).strip() if match else None


def source():
    """Version of the tree, its commit, and whether files differ from it (None: not a git tree)."""
    git = ("git", "-C", ROOT, "-c", f"safe.directory={ROOT}")
    commit = _output(*git, "rev-parse", "HEAD")
    return {
        "version": _find(r'#define DW_VERSION\s+"([^"]+)"', os.path.join(ROOT, "protocol", "base", "limits.h")),
        "commit": commit,
        "dirty": None if commit is None else _output(*git, "status", "--porcelain") is not None,
    }


def compiler(build):
    """From CMake's cache, since the compiler of today need not be the one of the build."""
    cache = os.path.join(build, "CMakeCache.txt")
    path = _find(r"^CMAKE_C_COMPILER:\w+=(.+)$", cache)
    version = _output(path, "--version") if path else None
    return {
        "compiler": version.splitlines()[0] if version else path,
        # CMakeLists.txt puts Release where nothing is given.
        "build_type": _find(r"^CMAKE_BUILD_TYPE:\w+=(.+)$", cache) or ("Release" if path else None),
        "sanitizer": _find(r"^DW_SANITIZE:\w+=(\w+)$", cache),
    }


def file_system(path):
    """Type, device and options of the mount that holds a folder."""
    path = os.path.realpath(path)
    best = None
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        for line in file:
            fields, _, rest = line.partition(" - ")
            point = fields.split()[4].encode().decode("unicode_escape")
            inside = path == point or path.startswith(point.rstrip("/") + "/")
            # Of mounts on one point the last one covers the others.
            if inside and (best is None or len(point) >= len(best[0])):
                kind, device, options = rest.split()[:3]
                best = (point, {"type": kind, "device": device, "options": options})
    return best[1] if best else None


def machine():
    memory = _find(r"^MemTotal:\s*(\d+) kB", "/proc/meminfo")
    return {
        "kernel": f"{platform.system()} {platform.release()}",
        "distribution": _find(r'^PRETTY_NAME="?([^"\n]+)', "/etc/os-release"),
        "cpu": _find(r"^model name\s*:\s*(.+)$", "/proc/cpuinfo") or platform.machine(),
        "cores": os.cpu_count(),
        "memory_mib": int(memory) // 1024 if memory else None,
    }


class Others:
    """How much of the processor time others used since this was made. Own children count once they were waited for; the
    kernel's own threads count as others."""

    def __init__(self):
        self._begin = self._read()

    @staticmethod
    def _read():
        with open("/proc/stat", encoding="ascii") as file:
            user, nice, system, idle, wait, irq, soft_irq = map(int, file.readline().split()[1:8])
        own = resource.getrusage(resource.RUSAGE_SELF)
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        busy = (user + nice + system + irq + soft_irq) / os.sysconf("SC_CLK_TCK")
        total = busy + (idle + wait) / os.sysconf("SC_CLK_TCK")
        return total, busy, sum((own.ru_utime, own.ru_stime, children.ru_utime, children.ru_stime))

    def share(self):
        """0 to 1, of all processors."""
        total, busy, own = (now - then for now, then in zip(self._read(), self._begin))
        return min(1.0, max(0.0, (busy - own) / total)) if total > 0 else 0.0


class Awake:
    """While it is held, idle processors of this machine poll instead of sleeping: the kernel's latency requirement, which
    it drops when the file is closed, also by a process that is killed. A processor that sleeps takes tens of
    microseconds to wake, in a virtual machine more, and each message of a quiet cluster would pay for it."""

    PATH = "/dev/cpu_dma_latency"
    NOTHING_US = b"\0\0\0\0"

    def __init__(self, wanted=True, path=PATH):
        self._path = path
        self._file = None
        self.why_not = None if wanted else "asked for"

    def __enter__(self):
        if self.why_not is None:
            try:
                self._file = os.open(self._path, os.O_WRONLY)
                os.write(self._file, self.NOTHING_US)
            except OSError as error:
                self.__exit__()
                self.why_not = f"{self._path}: {error.strerror}"
        return self

    def __exit__(self, *_):
        if self._file is not None:
            os.close(self._file)
            self._file = None

    @property
    def kept(self):
        return self._file is not None

    def facts(self):
        """For meta.json."""
        return {"processors_kept_awake": self.kept, "why_processors_sleep": self.why_not}


def add_awake_argument(parser):
    parser.add_argument("--let-sleep", action="store_true",
                        help="let idle processors sleep; otherwise they are kept awake, where that is permitted")


def awake_line(facts):
    if facts.get("processors_kept_awake"):
        return "idle processors were kept awake"
    why = facts.get("why_processors_sleep")
    return "idle processors slept, which lengthens each exchange" + (f" ({why})" if why else "")


def meta(build, data_dir):
    """All of it, as one flat dict; what cannot be found out is None."""
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        **source(),
        **compiler(build),
        **machine(),
        "rocksdb": _output("pkg-config", "--modversion", "rocksdb"),
        "grpc": _output("pkg-config", "--modversion", "grpc"),
        "file_system": file_system(data_dir),
        "hosts": [platform.node()],
    }


def describe(facts):
    """One line for people."""
    disk = facts.get("file_system") or {}
    parts = [f"{facts['cores']} cores, {facts['cpu']}",
             f"{facts['memory_mib'] / 1024:.0f} GiB" if facts.get("memory_mib") else None,
             facts.get("kernel"),
             f"{disk.get('type')} on {disk.get('device')}" if disk else None,
             f"RocksDB {facts['rocksdb']}" if facts.get("rocksdb") else None,
             awake_line(facts) if "processors_kept_awake" in facts else None]
    return "; ".join(part for part in parts if part)

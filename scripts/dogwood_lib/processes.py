"""Starting and stopping nodes and tools so that none outlives the launcher, however it ends.

Each child asks the kernel for SIGKILL when its parent dies (PR_SET_PDEATHSIG). "Parent" is the thread that forked, so
children are started on the main thread, which lives as long as the process. Children get a process group of their own,
so that Ctrl-C in a terminal reaches only the launcher, which then stops them in order.
"""

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import threading
import time

from dogwood_lib.errors import EnvironmentFailure

START_SECONDS = 30
STOP_SECONDS = 10
DEATH_SECONDS = 1
READY = "listening "

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


def _die_with(launcher):
    """What runs in the child between fork and exec."""
    def prepare():
        if _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
            os._exit(126)
        if os.getppid() != launcher:
            # The launcher died before the kernel was asked.
            os.kill(os.getpid(), signal.SIGKILL)
    return prepare


def spawn(command, **options):
    """subprocess.Popen for a child that dies with the launcher."""
    assert threading.current_thread() is threading.main_thread(), "children are tied to the thread that starts them"
    try:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, process_group=0, preexec_fn=_die_with(os.getpid()),
                                **options)
    except OSError as error:
        raise EnvironmentFailure(f"{command[0]} cannot be started: {error.strerror}") from error


def _last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it printed nothing"


def describe_end(code):
    """How a process ended, from its return code."""
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"


class Node:
    """A server that prints `listening HOST:PORT`; everything that it prints goes to its log file."""

    def __init__(self, name, command, log_path):
        self.name = name
        self.command = command
        self.log_path = log_path
        self.address = None
        self._known = threading.Event()
        self._asked = False
        with open(log_path, "ab") as log:
            self.process = spawn(command, stdout=subprocess.PIPE, stderr=log)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        """Copies stdout to the log, so that the node never waits for a reader."""
        with open(self.log_path, "ab", buffering=0) as log:
            for line in self.process.stdout:
                log.write(line)
                text = line.decode(errors="replace")
                if self.address is None and text.startswith(READY):
                    self.address = text[len(READY):].strip()
                    self._known.set()
        self._known.set()

    def wait_ready(self, seconds=START_SECONDS):
        """Returns the address once the node listens."""
        if not self._known.wait(seconds):
            raise EnvironmentFailure(f"{self.name} does not listen after {seconds} s; its log is {self.log_path}")
        if self.address is None:
            self._fail(self.process.wait())
        return self.address

    def check(self):
        """Raises if the node has died."""
        code = self.process.poll()
        if code is not None:
            self._fail(code)

    def last_line(self):
        """What it printed last."""
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return _last_line(log.read())

    def _fail(self, code):
        raise EnvironmentFailure(f"{self.name} {describe_end(code)}, and nobody asked it to: {self.last_line()} "
                                 f"({self.log_path})")

    def ask_to_stop(self):
        """Once: a second signal would cut short what the first one began."""
        if not self._asked and self.process.poll() is None:
            self._asked = True
            self.process.send_signal(signal.SIGTERM)

    def stop(self, seconds=STOP_SECONDS):
        """SIGTERM, after the bound SIGKILL. Returns the exit code; negative: the signal."""
        self.ask_to_stop()
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self._reader.join()
        self.process.stdout.close()
        return code


class Fleet:
    """The nodes of one run; leaving the `with` block stops them all."""

    def __init__(self, log_dir):
        self.log_dir = log_dir
        self.nodes = []
        os.makedirs(log_dir, exist_ok=True)

    def __enter__(self):
        return self

    def __exit__(self, *reason):
        self.stop()

    def start(self, name, command):
        """Starts a node and waits until it listens."""
        node = Node(name, command, os.path.join(self.log_dir, f"{name}.log"))
        self.nodes.append(node)
        node.wait_ready()
        return node

    def check(self, grace=0.0):
        """Raises if a node has died, or dies within so many seconds: who talks to a dying node may learn of its end
        before its parent does."""
        deadline = time.monotonic() + grace
        for node in self.nodes:
            if grace > 0:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    node.process.wait(max(0.0, deadline - time.monotonic()))
            node.check()

    def stop(self, seconds=STOP_SECONDS):
        """All are asked at once and share the bound."""
        deadline = time.monotonic() + seconds
        for node in self.nodes:
            node.ask_to_stop()
        while self.nodes:
            self.nodes[-1].stop(max(0.0, deadline - time.monotonic()))
            self.nodes.pop()

    def run_tool(self, command, seconds):
        """Runs a measuring program to its end and returns the JSON objects that it printed, one a line. If it fails
        because a node died, the node is blamed."""
        return self.run_tools([command], seconds)[0]

    def run_tools(self, commands, seconds):
        """The same for several programs at once; the answers come in the order of the commands."""
        deadline = time.monotonic() + seconds
        tools = []
        try:
            for command in commands:
                tools.append(spawn(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
            return [self._finish_tool(tool, seconds, deadline) for tool in tools]
        finally:
            for tool in tools:
                if tool.poll() is None:
                    tool.kill()
                tool.stdout.close()
                tool.stderr.close()
                tool.wait()

    def _finish_tool(self, tool, seconds, deadline):
        name = os.path.basename(tool.args[0])
        try:
            output, errors = tool.communicate(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired as error:
            self.check()
            raise EnvironmentFailure(f"{name} has not ended after {seconds:.0f} s") from error
        self.check(DEATH_SECONDS if tool.returncode != 0 else 0.0)
        if tool.returncode != 0:
            raise EnvironmentFailure(f"{name} {describe_end(tool.returncode)}: {_last_line(errors)}")
        return [json.loads(line) for line in output.splitlines()]

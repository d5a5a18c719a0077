"""Real storage nodes and their clients, for the process tests: started on loopback and port 0, stopped by pid."""

import json
import os
import queue
import shutil
import signal
import subprocess
import tempfile
import threading
import unittest

BUILD = os.environ["DW_BUILD_DIR"]
STORAGE = os.path.join(BUILD, "bin", "dogwood-storage")
CTL = os.path.join(BUILD, "bin", "dogwood-ctl")
RUN = "test-run"
PATIENCE = 120  # seconds, after which something hangs; nothing is measured by it

VOTE, DENY, DECIDE_COMMIT, DECIDE_ABORT, COMMIT_LOCAL, START, COORD_COMMIT, COORD_ABORT, END, READ = range(10)


def program(name):
    return os.path.join(BUILD, "tests", name)


def run(command, **more):
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False, **more)


class Node:
    """One dogwood-storage process that serves."""

    def __init__(self, *flags, number=1, run_id=RUN, **more):
        command = [STORAGE, "--id", str(number), "--run-id", run_id, *map(str, flags)]
        self.number = number
        self.run_id = run_id
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.errors, text=True, **more)
        line = self.process.stdout.readline()
        if not line.startswith("listening "):
            self.process.wait(PATIENCE)
            raise AssertionError(f"no node: {line!r} {self.stderr()!r}")
        self.address = line.split()[1]

    def stderr(self):
        self.errors.seek(0)
        return self.errors.read()

    def ctl(self, *words, code=0):
        """The object that dogwood-ctl prints; with another code than 0, its line on stderr."""
        done = run([CTL, "--at", self.address, "--run-id", self.run_id, "--timeout-ms", str(PATIENCE * 1000), "--json",
                    *map(str, words)])
        if done.returncode != code:
            raise AssertionError(f"dogwood-ctl {words}: exit {done.returncode}: {done.stderr}")
        return json.loads(done.stdout) if code == 0 else done.stderr

    def scan(self, log=0, *more):
        return self.ctl("scan", log, *more)["records"]

    def stop(self, with_signal=signal.SIGTERM):
        """Ends the node, and returns its exit code."""
        self.process.send_signal(with_signal)
        return self.wait()

    def wait(self):
        code = self.process.wait(PATIENCE)
        self.process.stdout.close()
        return code

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.wait()
        self.process.stdout.close()
        self.errors.close()


class Stream:
    """A stream_client: what it says is queued by a thread, so that a test can wait for one thing at a time."""

    def __init__(self, node):
        self.process = subprocess.Popen([program("stream_client"), node.address, str(node.number), node.run_id],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.events = queue.Queue()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        for line in self.process.stdout:
            self.events.put(line.rstrip("\n"))
        self.events.put(None)

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def add(self, number, ask, sequence, log=0, redo=16, incarnation=1, writer=None, coordinator=0):
        writer = log if writer is None else writer
        redo = redo if ask == VOTE else 0
        self.say(f"add {number} {log} {ask} {coordinator} 1 {sequence} {writer} {incarnation} {redo}")

    def send(self):
        self.say("send")

    def next(self):
        event = self.events.get(timeout=PATIENCE)
        assert event is not None, "the client ended"
        return event

    def expect(self, start):
        """The words of the next event, which must begin like this."""
        event = self.next()
        assert event.startswith(start), f"expected {start!r}, got {event!r}"
        return event.split(" ")

    def await_(self, start):
        """Skips events until one begins like this."""
        while True:
            event = self.next()
            if event.startswith(start):
                return event

    def replies(self, count):
        """{id: (answer, position)} of so many replies; everything else but a `down` is skipped."""
        found = {}
        while len(found) < count:
            event = self.next()
            assert not event.startswith("down"), event
            if event.startswith("reply "):
                _, number, _, answer, position, _ = event.split()
                found[int(number)] = (answer, int(position))
        return found

    def quiet(self):
        return self.events.empty()

    def close(self):
        if self.process.poll() is None:
            try:
                self.say("quit")
            except BrokenPipeError:
                pass
        code = self.process.wait(PATIENCE)
        self.thread.join(PATIENCE)
        self.process.stdin.close()
        self.process.stdout.close()
        return code


class Case(unittest.TestCase):
    """Gives each test a directory, and ends what it started."""

    def setUp(self):
        self.base = tempfile.mkdtemp(prefix="dogwood-process-")
        self.addCleanup(shutil.rmtree, self.base, ignore_errors=True)
        self.data = os.path.join(self.base, "data")

    def node(self, *flags, **more):
        node = Node(*flags, **more)
        self.addCleanup(node.close)
        return node

    def rocksdb(self, *flags, **more):
        return self.node("--data", self.data, *flags, **more)

    def stream(self, node):
        stream = Stream(node)
        self.addCleanup(stream.close)
        stream.expect("up")
        return stream

    def refused(self, code, *words, command=STORAGE, **more):
        """Runs a program that must refuse: the exit code, nothing on stdout, one line on stderr, which is returned."""
        done = run([command, *map(str, words)], **more)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        name = os.path.basename(command)
        self.assertTrue(done.stderr.startswith(name + ": "), done.stderr)
        return done.stderr

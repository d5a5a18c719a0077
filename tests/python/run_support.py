"""What the tests of `dogwood run` share: a build folder of fake programs, and calls of the launcher with them."""

import csv
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "scripts"))

DOGWOOD = os.path.join(ROOT, "scripts", "dogwood")
FAKE = os.path.join(HERE, "fake_node.py")
PROGRAMS = ("compute", "storage", "ctl", "bench-stream", "bench-log", "bench-writer")
QUICK = "duration_s = 0.1\nwarmup_s = 0\ntrials = 1\n"
WAIT_SECONDS = 30


class FakeCluster(unittest.TestCase):
    """Each test has a folder with fake programs, an experiment file, and a place for results."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name
        self.state = os.path.join(self.folder, "state")
        self.results = os.path.join(self.folder, "results")
        self.out = os.path.join(self.results, "one")
        self.partial = os.path.join(self.results, ".one.partial")
        os.makedirs(self.state)
        os.makedirs(os.path.join(self.folder, "build", "bin"))
        for name in PROGRAMS:
            os.symlink(FAKE, os.path.join(self.folder, "build", "bin", f"dogwood-{name}"))
        self.fake = {}

    def environment(self):
        return {**os.environ, "DW_BUILD_DIR": os.path.join(self.folder, "build"), "DW_FAKE": json.dumps(self.fake),
                "DW_FAKE_STATE": self.state}

    def write(self, text, name="one.toml"):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def dogwood(self, *words):
        return subprocess.run([DOGWOOD, *words], capture_output=True, text=True, timeout=120, env=self.environment())

    def experiment(self, text="", *words, figures=False):
        """Runs an experiment made of quick settings and `text`."""
        extra = [] if figures else ["--no-figures"]
        return self.dogwood("run", self.write(QUICK + text), "--out", self.out, *extra, *words)

    def start(self, text, *words):
        """The same, without waiting for its end."""
        command = [DOGWOOD, "run", self.write(QUICK + text), "--out", self.out, "--no-figures", *words]
        launcher = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                    env=self.environment())
        self.addCleanup(launcher.stdout.close)
        self.addCleanup(launcher.wait)
        self.addCleanup(launcher.kill)
        return launcher

    def started(self):
        """The command lines of all nodes that were ever started."""
        path = os.path.join(self.state, "started")
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as file:
            return file.read().splitlines()

    def living(self):
        """Processes that were started from our build folder."""
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    with open(f"/proc/{entry}/cmdline", "rb") as file:
                        words = file.read()
                except OSError:
                    continue
                if self.folder.encode() + b"/build/bin/" in words:
                    found.append(int(entry))
        return found

    def wait_until(self, condition, what):
        deadline = time.monotonic() + WAIT_SECONDS
        while not condition():
            self.assertLess(time.monotonic(), deadline, f"still not: {what}")
            time.sleep(0.02)

    def assert_refused(self, done, code, *parts):
        """One line that names the thing, with that exit code."""
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)

    def assert_good(self, done):
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stderr + done.stdout)

    def rows(self):
        with open(os.path.join(self.out, "summary.csv"), encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def read(self, *names):
        with open(os.path.join(self.out, *names), encoding="utf-8") as file:
            return file.read()

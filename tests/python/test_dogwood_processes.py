"""Are nodes started, watched and stopped, and is none left over, however the launcher ends?"""

import os
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPTS = os.path.join(ROOT, "scripts")
sys.path.insert(0, SCRIPTS)

from dogwood_lib.errors import EnvironmentFailure  # noqa: E402
from dogwood_lib.processes import Fleet, Node  # noqa: E402

NODE = """
import os, signal, sys
if "deaf" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
else:
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
print("starting", file=sys.stderr, flush=True)
if "silent" not in sys.argv:
    print("listening 127.0.0.1:1", flush=True)
if "chatty" in sys.argv:
    print("x" * 200000, flush=True)
    sys.exit(0)
if "dies" in sys.argv:
    print("the disk is on fire", file=sys.stderr, flush=True)
    sys.exit(7)
while True:
    signal.pause()
"""

# A launcher with two nodes, which tells their pids. The nodes inherit the writing end of a pipe, so that its reading end
# comes to an end when the last of them is gone.
LAUNCHER = """
import functools, os, subprocess, sys, types
scripts, logs, node, writer, *words = sys.argv[1:]
sys.path.insert(0, scripts)
from dogwood_lib import cli, processes
subprocess.Popen = functools.partial(subprocess.Popen, pass_fds=(int(writer),))

def run(given):
    with processes.Fleet(logs) as fleet:
        for name in ("a", "b"):
            fleet.start(name, [sys.executable, "-c", node, *words])
        os.close(int(writer))
        print(*[node.process.pid for node in fleet.nodes], flush=True)
        sys.stdin.read()
    return 0

module = types.ModuleType("launch")
module.add_arguments = lambda parser: None
module.run = run
sys.modules["launch"] = module
sys.exit(cli.main(["go"], {"go": ("launch", "goes")}))
"""


def node_command(*words):
    return [sys.executable, "-c", NODE, *words]


class Nodes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.logs = folder.name

    def log(self, name):
        with open(os.path.join(self.logs, f"{name}.log"), encoding="utf-8") as file:
            return file.read()

    def test_start_and_stop(self):
        with Fleet(self.logs) as fleet:
            node = fleet.start("a", node_command())
            self.assertEqual(node.address, "127.0.0.1:1")
            fleet.check()
        self.assertEqual(node.process.returncode, 0)
        self.assertIn("starting", self.log("a"))
        self.assertIn("listening", self.log("a"))

    def test_a_node_that_ignores_sigterm_is_killed_after_the_bound(self):
        node = Node("a", node_command("deaf"), os.path.join(self.logs, "a.log"))
        node.wait_ready()
        self.assertEqual(node.stop(0.2), -signal.SIGKILL)

    def test_a_node_may_print_more_than_a_pipe_holds(self):
        with Fleet(self.logs) as fleet:
            node = fleet.start("a", node_command("chatty"))
            self.assertEqual(node.process.wait(60), 0)
        self.assertIn("x" * 200000, self.log("a"))

    def test_a_death_at_the_start_is_told_with_its_last_line(self):
        with Fleet(self.logs) as fleet:
            with self.assertRaisesRegex(EnvironmentFailure, "a ended with code 7.*the disk is on fire"):
                fleet.start("a", node_command("silent", "dies"))

    def test_a_later_death_is_noticed(self):
        with Fleet(self.logs) as fleet:
            node = fleet.start("a", node_command())
            os.kill(node.process.pid, signal.SIGKILL)
            node.process.wait()
            with self.assertRaisesRegex(EnvironmentFailure, "killed by SIGKILL"):
                fleet.check()

    def test_a_failed_tool_blames_the_node_that_died(self):
        with Fleet(self.logs) as fleet:
            node = fleet.start("a", node_command())
            with self.assertRaisesRegex(EnvironmentFailure, "^a was killed by SIGKILL"):
                fleet.run_tool(["/bin/sh", "-c", f"kill -9 {node.process.pid}; exit 1"], 60)

    def test_tools(self):
        with Fleet(self.logs) as fleet:
            self.assertEqual(fleet.run_tool(["/bin/echo", '{"a": 1}'], 60), [{"a": 1}])
            with self.assertRaisesRegex(EnvironmentFailure, "sh ended with code 5: no luck"):
                fleet.run_tool(["/bin/sh", "-c", "echo no luck >&2; exit 5"], 60)
            with self.assertRaisesRegex(EnvironmentFailure, "has not ended"):
                fleet.run_tool(["/bin/sleep", "1000"], 0.1)
            with self.assertRaisesRegex(EnvironmentFailure, "cannot be started"):
                fleet.run_tool(["/nonexistent/tool"], 1)

    def test_a_node_that_never_listens(self):
        node = Node("a", node_command("silent"), os.path.join(self.logs, "a.log"))
        try:
            with self.assertRaisesRegex(EnvironmentFailure, "does not listen"):
                node.wait_ready(0.2)
        finally:
            node.stop()


class Launcher(unittest.TestCase):
    """However a launcher ends, its nodes end with it. A node left over hangs the test, which ctest then ends."""

    def launch(self, *words):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        launcher = subprocess.Popen([sys.executable, "-B", "-c", LAUNCHER, SCRIPTS, folder.name, NODE, str(writer),
                                     *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    text=True, pass_fds=(writer,))
        os.close(writer)
        self.addCleanup(launcher.stderr.close)
        self.addCleanup(launcher.stdout.close)
        self.addCleanup(launcher.stdin.close)
        pids = [int(pid) for pid in launcher.stdout.readline().split()]
        self.assertEqual(len(pids), 2)
        for pid in pids:
            os.kill(pid, 0)
        return launcher, reader

    def test_killed(self):
        launcher, reader = self.launch("deaf")
        launcher.send_signal(signal.SIGKILL)
        launcher.wait()
        self.assertEqual(os.read(reader, 1), b"")

    def test_terminated(self):
        launcher, reader = self.launch()
        launcher.send_signal(signal.SIGTERM)
        self.assertEqual(launcher.wait(60), 128 + signal.SIGTERM)
        self.assertEqual(os.read(reader, 1), b"")
        self.assertIn("ended by SIGTERM", launcher.stderr.read())

    def test_interrupted(self):
        launcher, reader = self.launch()
        launcher.send_signal(signal.SIGINT)
        self.assertEqual(launcher.wait(60), 128 + signal.SIGINT)
        self.assertEqual(os.read(reader, 1), b"")

    def test_ended_by_itself(self):
        launcher, reader = self.launch()
        launcher.stdin.close()
        self.assertEqual(launcher.wait(60), 0)
        self.assertEqual(os.read(reader, 1), b"")


if __name__ == "__main__":
    unittest.main()

"""Is a results folder whole or partial, never overwritten, and written by one launcher at a time?"""

import os
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPTS = os.path.join(ROOT, "scripts")
sys.path.insert(0, SCRIPTS)

from dogwood_lib.errors import AskedWrongly, EnvironmentFailure  # noqa: E402
from dogwood_lib.results import ResultsFolder  # noqa: E402

# Another launcher: takes the folder, says so, and holds it until it is killed.
HOLDER = """
import sys
sys.path.insert(0, sys.argv[1])
from dogwood_lib.results import ResultsFolder
with ResultsFolder(sys.argv[2]) as folder:
    print("held", flush=True)
    sys.stdin.read()
"""


class Folder(unittest.TestCase):
    def setUp(self):
        self.parent = tempfile.TemporaryDirectory()
        self.addCleanup(self.parent.cleanup)
        self.path = os.path.join(self.parent.name, "results", "one")
        self.partial = os.path.join(self.parent.name, "results", ".one.partial")

    def test_partial_until_published(self):
        with ResultsFolder(self.path) as folder:
            folder.write_text("a.txt", "text")
            self.assertTrue(os.path.isdir(self.partial))
            self.assertFalse(os.path.exists(self.path))
            self.assertEqual(folder.publish(), self.path)
        self.assertEqual(os.listdir(os.path.dirname(self.path)), ["one"])
        self.assertEqual(os.listdir(self.path), ["a.txt"])

    def test_an_existing_folder_is_refused(self):
        os.makedirs(self.path)
        with self.assertRaisesRegex(AskedWrongly, "exists"):
            ResultsFolder(self.path)
        self.assertEqual(os.listdir(os.path.dirname(self.path)), ["one"])

    def test_a_folder_that_appears_meanwhile_is_not_overwritten(self):
        with ResultsFolder(self.path) as folder:
            os.makedirs(self.path)
            with self.assertRaises(AskedWrongly):
                folder.publish()
        self.assertEqual(os.listdir(self.path), [])

    def test_a_run_that_failed_leaves_its_partial_folder(self):
        with self.assertRaises(ZeroDivisionError):
            with ResultsFolder(self.path) as folder:
                folder.write_text("a.txt", "text")
                raise ZeroDivisionError
        self.assertTrue(os.path.isfile(os.path.join(self.partial, "a.txt")))
        with self.assertRaisesRegex(AskedWrongly, "left of a run"):
            ResultsFolder(self.path)
        self.assertTrue(os.path.isfile(os.path.join(self.partial, "a.txt")))

    def test_a_second_launcher_is_locked_out_until_the_first_is_dead(self):
        holder = subprocess.Popen([sys.executable, "-B", "-c", HOLDER, SCRIPTS, self.path], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        try:
            self.assertEqual(holder.stdout.readline(), "held\n")
            with self.assertRaisesRegex(EnvironmentFailure, f"by process {holder.pid}"):
                ResultsFolder(self.path)
            holder.send_signal(signal.SIGKILL)
            holder.wait()
            with self.assertRaisesRegex(AskedWrongly, "left of a run"):
                ResultsFolder(self.path)
        finally:
            holder.kill()
            holder.wait()
            holder.stdin.close()
            holder.stdout.close()
        self.assertEqual(sorted(os.listdir(os.path.dirname(self.path))), [".one.partial"])

    def test_a_parent_that_cannot_be_written(self):
        file = os.path.join(self.parent.name, "file")
        with open(file, "w", encoding="ascii"):
            pass
        with self.assertRaisesRegex(EnvironmentFailure, "file"):
            ResultsFolder(os.path.join(file, "one"))

    def test_files(self):
        with ResultsFolder(self.path) as folder:
            folder.write_csv("sub/a.csv", ["x", "y"], [{"x": 1, "y": None}, {"x": 0, "z": 3}])
            folder.write_toml("c.toml", {"a": [1, 2], "b": "q\"\\", "c": True, "d": None, "e": 1.5})
            with open(os.path.join(self.partial, "sub", "a.csv"), encoding="ascii") as file:
                self.assertEqual(file.read(), "x,y\n1,\n0,\n")
            import tomllib
            with open(os.path.join(self.partial, "c.toml"), "rb") as file:
                self.assertEqual(tomllib.load(file), {"a": [1, 2], "b": "q\"\\", "c": True, "e": 1.5})


if __name__ == "__main__":
    unittest.main()

"""Does scripts/dogwood find its commands, and refuse what is wrong with one line and the right exit code?"""

import argparse
import contextlib
import io
import os
import subprocess
import sys
import tempfile
import types
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts"))

from dogwood_lib import arguments, cli  # noqa: E402
from dogwood_lib.errors import AskedWrongly, EnvironmentFailure, Inconclusive  # noqa: E402

DOGWOOD = os.path.join(ROOT, "scripts", "dogwood")


def dogwood(*words):
    return subprocess.run([DOGWOOD, *words], capture_output=True, text=True, timeout=60)


class Calls(unittest.TestCase):
    """The real program."""

    def assert_refused(self, words, *parts):
        done = dogwood(*words)
        self.assertEqual((done.returncode, done.stdout), (2, ""), words)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)

    def test_help_lists_every_command(self):
        done = dogwood("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for name in cli.COMMANDS:
            self.assertIn(f"  {name} ", done.stdout)

    def test_every_command_has_help(self):
        for name in cli.COMMANDS:
            done = dogwood(*name.split(), "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)
            self.assertIn(f"usage: dogwood {name}", done.stdout)

    def test_unknown_commands(self):
        self.assert_refused([], "bench log")
        self.assert_refused(["brench", "log"], '"brench log"', 'did you mean "bench log"?')
        self.assert_refused(["bench"], '"bench"', "bench log")
        self.assert_refused(["bench", "tea"], '"bench tea"')
        self.assert_refused(["--quick"], "no command")

    def test_wrong_flags_of_bench_log(self):
        for words, part in ((["--dephts", "1"], 'did you mean "--depths"?'), (["--depth", "1"], "--depth"),
                            (["--depths", "0"], "1 to 4096"), (["--depths", "1,x"], '"x"'), (["--depths", "4,4"], "twice"),
                            (["--seconds", "nan"], "0.05 to 600"), (["--seconds"], "--seconds"),
                            (["--stores", "rockdb"], 'did you mean "rocksdb"?'), (["--sync", "maybe"], "on, off"),
                            (["--rounds", "1.5"], "whole number"), (["more"], '"more"'),
                            (["--entries", "5"], "at least two")):
            self.assert_refused(["bench", "log", *words], part)

    def test_missing_programs_are_environment(self):
        with tempfile.TemporaryDirectory() as parent:
            done = dogwood("bench", "log", "--quick", "--build", "/nonexistent", "--no-figures", "--out",
                           os.path.join(parent, "run"))
            self.assertEqual(os.listdir(parent), [])
        self.assertEqual(done.returncode, 3)
        self.assertIn("/nonexistent/bin/dogwood-", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


class Registry(unittest.TestCase):
    """Commands of our own in the registry."""

    def run_with(self, run, argv):
        module = types.ModuleType("dogwood_test_command", "A command of the test.")
        module.add_arguments = lambda parser: parser.add_argument("--number", type=arguments.number(1, 9, int))
        module.run = run
        sys.modules[module.__name__] = module
        commands = {"go": (module.__name__, "goes"), "go far": (module.__name__, "goes far")}
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            code = cli.main(argv, commands)
        return code, errors.getvalue()

    def test_the_code_of_a_command_is_ours(self):
        self.assertEqual(self.run_with(lambda given: given.number, ["go", "--number", "4"]), (4, ""))

    def test_the_longest_name_counts(self):
        self.assertEqual(cli.find_command(["go", "far", "--x"], {"go": None, "go far": None}), ("go far", ["--x"]))
        self.assertEqual(cli.find_command(["go", "away"], {"go": None, "go far": None}), ("go", ["away"]))

    def test_failures_become_codes(self):
        for failure, code in ((AskedWrongly, 2), (EnvironmentFailure, 3), (Inconclusive, 4)):
            def fail(given, failure=failure):
                raise failure("because")
            self.assertEqual(self.run_with(fail, ["go", "far"]), (code, "dogwood go far: because\n"))

    def test_a_flag_of_a_command_is_refused(self):
        code, errors = self.run_with(lambda given: 0, ["go", "--number", "10"])
        self.assertEqual(code, 2)
        self.assertIn('"10" is not a whole number from 1 to 9', errors)


class Types(unittest.TestCase):
    def test_number(self):
        self.assertEqual(arguments.number(0, 10)("2.5"), 2.5)
        for text in ("-1", "11", "nan", "inf", "", "x"):
            with self.assertRaises(argparse.ArgumentTypeError):
                arguments.number(0, 10)(text)

    def test_lists_keep_their_order(self):
        self.assertEqual(arguments.list_of(arguments.number(1, 99, int))("64,1,16"), [64, 1, 16])
        for text in ("", "1,", "1,1"):
            with self.assertRaises(argparse.ArgumentTypeError):
                arguments.list_of(arguments.number(1, 99, int))(text)


if __name__ == "__main__":
    unittest.main()

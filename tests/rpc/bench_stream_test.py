"""Does dogwood-bench-stream print what a log benchmark needs, and refuse what is wrong with the right exit code?

usage: bench_stream_test.py PATH-OF-PROGRAM
"""

import json
import signal
import subprocess
import sys
import unittest

PROGRAM = sys.argv.pop()


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60)


class BenchStream(unittest.TestCase):
    def setUp(self):
        self.server = subprocess.Popen([PROGRAM, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
        self.address = self.server.stdout.readline().split()[1]

    def tearDown(self):
        self.server.send_signal(signal.SIGTERM)
        self.assertEqual(self.server.wait(60), 0)
        self.server.stdout.close()

    def test_each_depth_gives_one_line(self):
        done = run("--connect", self.address, "--depths", "1,8", "--seconds", "0.1", "--bytes", "64")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([line["depth"] for line in lines], [1, 8])
        for line in lines:
            self.assertEqual(line["bytes"], 64)
            self.assertGreater(line["requests"], 0)
            self.assertGreater(line["requests_per_s"], 0)
            self.assertGreaterEqual(line["p99_us"], line["p50_us"])

    def test_busy_port(self):
        done = run("--listen", self.address)
        self.assertEqual(done.returncode, 3)
        self.assertIn("is in use", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_wrong_flags(self):
        for arguments in (["--depths", "0"], ["--depths", "1,,2"], ["--depths", "x"], ["--seconds", "-1"],
                          ["--bytes", "70000"]):
            done = run("--connect", self.address, *arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(arguments[0], done.stderr)
        for arguments in ([], ["--connect", self.address, "--listen", self.address], ["--what"],
                          ["--connect", self.address, "more"]):
            self.assertEqual(run(*arguments).returncode, 2, arguments)

    def test_wrong_address(self):
        done = run("--connect", "nowhere")
        self.assertEqual(done.returncode, 3)
        self.assertIn("nowhere", done.stderr)


if __name__ == "__main__":
    unittest.main()

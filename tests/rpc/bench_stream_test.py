"""Does dogwood-bench-stream answer dogwood-bench-log, which prints what others read, and do both refuse what is wrong
with the right exit code?

usage: bench_stream_test.py PATH-OF-SERVER PATH-OF-CLIENT
"""

import json
import signal
import subprocess
import sys
import unittest

CLIENT = sys.argv.pop()
SERVER = sys.argv.pop()


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


class BenchStream(unittest.TestCase):
    def ask(self, *arguments):
        return run(CLIENT, "--connect", self.address, "--run-id", "bench-stream", *arguments)

    def setUp(self):
        self.server = subprocess.Popen([SERVER, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
        self.address = self.server.stdout.readline().split()[1]

    def tearDown(self):
        self.server.send_signal(signal.SIGTERM)
        self.assertEqual(self.server.wait(60), 0)
        self.server.stdout.close()

    def test_each_depth_gives_one_line(self):
        done = self.ask("--depths", "1,8", "--seconds", "0.1", "--bytes", "64")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([line["depth"] for line in lines], [1, 8])
        for line in lines:
            self.assertEqual(line["bytes"], 64)
            self.assertGreater(line["count"], 0)
            self.assertGreater(line["per_s"], 0)
            self.assertEqual(line["answers"], {"VOTE_YES": line["count"]})
            self.assertGreaterEqual(line["p99_us"], line["p50_us"])

    def test_busy_port(self):
        done = run(SERVER, "--listen", self.address)
        self.assertEqual(done.returncode, 3)
        self.assertIn("is in use", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_wrong_flags(self):
        for arguments in (["--depths", "0"], ["--depths", "1,,2"], ["--depths", "x"], ["--seconds", "-1"],
                          ["--bytes", "70000"]):
            done = self.ask(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(arguments[0], done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1)
        for command in ([SERVER], [SERVER, "--what"], [SERVER, "--listen", "127.0.0.1"],
                        [SERVER, "--listen", self.address, "more"], [CLIENT], [CLIENT, "--connect", self.address], [CLIENT, "--run-id", "bench-stream"]):
            done = run(*command)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), command)

    def test_wrong_address(self):
        done = run(CLIENT, "--connect", "nowhere", "--run-id", "bench-stream")
        self.assertEqual(done.returncode, 3)
        self.assertIn("nowhere", done.stderr)


if __name__ == "__main__":
    unittest.main()

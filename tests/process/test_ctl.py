"""Does dogwood-ctl say what it finds, neatly and as JSON, and refuse what is wrong in one line with the right exit code?"""

import json
import socket
import subprocess
import unittest

from support import CTL, Case, run


class Ctl(Case):
    def refuse(self, code, *words):
        return self.refused(code, *words, command=CTL)

    def test_wrong_flags_and_words(self):
        at = ("--at", "127.0.0.1:1")
        for words, hint in (((*at,), "a command is missing"), ((*at, "stat"), "do you mean stats?"),
                            ((*at, "wxyz"), "unknown command 'wxyz'"), (("identify",), "--at is missing"),
                            (("--at", "here", "ping"), "--at 'here'"), ((*at, "--jsn", "ping"), "do you mean --json?"),
                            ((*at, "ping", "--reset"), "--reset does not go with ping"), ((*at, "ping", "x"), "'x'"),
                            ((*at, "scan"), "scan needs more words"), ((*at, "scan", "64"), "log '64'"),
                            ((*at, "scan", "0", "--limit", "0"), "--limit"), ((*at, "read", "0", "1:0:3"), "'1:0:3'"),
                            ((*at, "read", "0", "1:1"), "'1:1'"), ((*at, "log", "0", "vot", "0:1:1"), "ask 'vot'"),
                            ((*at, "log", "0", "end", "0:1:1", "--redo", "x"), "--redo"), ((*at, "begin"), "--duration-ms"),
                            ((*at, "log", "0", "vote", "0:1:1", "--writer", "64"), "--writer"),
                            ((*at, "log", "0", "vote", "0:1:1", "--participants", "x"), "--participants"),
                            ((*at, "delay", "5:gauss"), "gauss"), ((*at, "--run-id", "a b", "ping"), "--run-id"),
                            ((*at, "--timeout-ms", "0", "ping"), "--timeout-ms"), ((*at, "--at"), "--at needs a value")):
            self.assertIn(hint, self.refuse(2, *words))

    def test_nobody_answers(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            address = f"127.0.0.1:{listener.getsockname()[1]}"
        for command in (("identify",), ("stats",), ("log", 0, "vote", "0:1:1"), ("stop",)):
            line = self.refuse(3, "--at", address, "--timeout-ms", 200, *command)
            self.assertIn(address, line)
            self.assertIn("is it running?", line)
        # Half an object on standard output would be read as something.
        for command in (("stats",), ("scan", 0), ("read", 0, "0:1:1")):
            self.refuse(3, "--at", address, "--timeout-ms", 200, "--json", *command)
        self.assertIn("host.invalid", self.refuse(3, "--at", "host.invalid:80", "ping"))

    def test_version_and_help(self):
        self.assertEqual(run([CTL, "--version"]).stdout, "dogwood-ctl 0.1.0\n")
        self.assertIn("usage: dogwood-ctl", run([CTL, "--help"]).stdout)

    def test_output_that_cannot_be_written(self):
        node = self.node("--store", "memory")
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([CTL, "--at", node.address, "stats"], stdout=full, stderr=subprocess.PIPE, text=True,
                                  check=False)
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, r"\Adogwood-ctl: the output cannot be written[^\n]*\n\Z")

    def test_human_and_json_output(self):
        node = self.node("--store", "memory")

        def human(*words):
            done = run([CTL, "--at", node.address, *map(str, words)])
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            return done.stdout

        self.assertIn("storage node 1 of run test-run, version 0.1.0", human("identify"))
        self.assertIn("storage node 1 answers after", human("ping"))
        self.assertEqual(human("delay"), "no delay\n")
        self.assertEqual(human("delay", "2.5:lognormal:0.3"), "lognormal, mean 2.5 ms, parameter 0.3\n")
        self.assertEqual(node.ctl("delay"), {"mean_ms": 2.5, "distribution": "lognormal", "parameter": 0.3})
        human("delay", "0")
        self.assertEqual(human("log", 2, "vote", "1:1:7", "--redo", "hello", "--participants", "1-2"),
                         "VOTE of transaction 1:1:7 in log 2: VOTE_YES, entry at position 1, owner's incarnation 0\n")
        self.assertEqual(node.ctl("log", 2, "decide-commit", "1.1.7", "--writer", 2),
                         {"log": 2, "txn": "1:1:7", "ask": "DECIDE_COMMIT", "answer": "COMMIT", "position": 1,
                          "incarnation": 0})
        self.assertIn("log 2, transaction 1:1:7: COMMIT\n", human("read", 2, "1:1:7"))
        entry = node.ctl("read", 2, "1:1:7", "--hex")
        self.assertEqual((entry["state"], entry["first_position"]), ("COMMIT", 1))
        vote, commit = entry["records"]
        self.assertEqual((vote["record"], vote["participants"], vote["redo"]), ("VOTE_YES", [1, 2], b"hello".hex()))
        self.assertEqual((commit["record"], commit["redo_bytes"], commit["participants"]), ("COMMIT", 0, []))
        self.assertEqual(node.ctl("read", 2, "1:1:8"), {"log": 2, "txn": "1:1:8", "state": "NONE", "first_position": 0,
                                                        "records": []})
        lines = human("scan", 2).splitlines()
        self.assertEqual(len(lines), 4)
        self.assertEqual(lines[-1], "2 records, to the end of log 2")
        self.assertEqual(human("scan", 2, "--limit", 1).splitlines()[-1], "1 records; go on with --from 2")
        self.assertEqual(human("fence", 2), "log 2 is fenced: its owner's incarnation is 1 now\n")
        self.assertIn("requests.vote", human("stats"))
        self.assertEqual(json.loads(human("--json", "ping"))["role"], "storage")
        self.assertIn(f"process {node.process.pid}, is stopping", human("stop"))
        self.assertEqual(node.wait(), 0)

    def test_two_phase_entry(self):
        node = self.node("--store", "memory")
        for ask, answer in (("start", "START"), ("coord-commit", "COMMIT"), ("coord-commit", "COMMIT"), ("end", "END"),
                            ("coord-abort", "CONFLICT")):
            words = ("--participants", "0-1") if ask in ("start", "coord-commit") else ()
            self.assertEqual(node.ctl("log", 0, ask, "0:1:1", *words)["answer"], answer, ask)
        entry = node.ctl("read", 0, "0:1:1")
        self.assertEqual((entry["state"], [record["record"] for record in entry["records"]]),
                         ("END", ["START_2PC", "COMMIT", "END"]))
        self.assertTrue(all(record["coordinator"] for record in entry["records"]))

    def test_method_of_another_role(self):
        node = self.node("--store", "memory")
        self.assertIn("storage node 1 has no method Status", node.ctl("status", code=2))

    def test_timeout_of_a_log_request(self):
        node = self.node("--store", "memory", "--log-delay", 60000)
        line = self.refuse(3, "--at", node.address, "--timeout-ms", 3000, "log", 0, "vote", "0:1:1")
        self.assertIn("the outcome is unknown", line)


if __name__ == "__main__":
    unittest.main()

"""Does a storage node start, say where it listens, end cleanly, and refuse what is wrong in one line, with the right exit
code and without losing a record?"""

import glob
import os
import resource
import signal
import socket
import subprocess
import unittest

from support import RUN, STORAGE, VOTE, Case, run

NODE = ("--id", 1, "--run-id", RUN)
MEMORY = (*NODE, "--store", "memory")


class Start(Case):
    def test_serves_and_stops(self):
        for with_signal in (signal.SIGTERM, signal.SIGINT):
            node = self.node("--store", "memory")
            self.assertEqual(node.ctl("identify"), {"role": "storage", "node": 1, "run_id": RUN, "version": "0.1.0",
                                                    "pid": node.process.pid})
            self.assertEqual(node.stop(with_signal), 0)
            self.assertEqual(node.stderr(), "")

    def test_stop_call(self):
        node = self.rocksdb()
        self.assertEqual(node.ctl("stop")["state"], "stopping")
        self.assertEqual(node.wait(), 0)
        self.assertEqual(node.stderr(), "")

    def test_stops_with_clients_and_requests(self):
        """What waits is written, though nobody hears of it: delays are cut short."""
        node = self.rocksdb("--log-delay", 60000)
        streams = [self.stream(node) for _ in range(3)]
        for number, stream in enumerate(streams):
            for sequence in range(20):
                stream.add(sequence, VOTE, 100 * number + sequence)
            stream.send()
        while node.ctl("stats")["messages"] < 3:
            pass
        self.assertEqual(node.stop(), 0)
        self.assertEqual(node.stderr(), "")
        for stream in streams:
            stream.await_("down")
        again = self.rocksdb()
        self.assertEqual(len(again.scan()), 60)

    def test_version_and_help(self):
        self.assertEqual(run([STORAGE, "--version"]).stdout, "dogwood-storage 0.1.0\n")
        self.assertIn("usage: dogwood-storage", run([STORAGE, "--help"]).stdout)

    def test_default_is_loopback(self):
        node = self.node("--store", "memory")
        self.assertTrue(node.address.startswith("127.0.0.1:"))


class Wrong(Case):
    """Wrong flags: exit code 2, and the line names the flag."""

    def test_values(self):
        for flag, value in (("--id", "64"), ("--id", "-1"), ("--id", "x"), ("--id", ""), ("--id", "1 "),
                            ("--run-id", "a b"), ("--run-id", ""), ("--run-id", "x" * 64),
                            ("--listen", "127.0.0.1"), ("--listen", ":80"), ("--listen", "127.0.0.1:65536"),
                            ("--listen", "127.0.0.1:x"), ("--log-delay", "-1"), ("--log-delay", "60001"),
                            ("--log-delay", "x"), ("--log-delay", "1:gauss"), ("--log-delay", "1:uniform:2"),
                            ("--log-delay", "nan"), ("--sync", "yes"), ("--store", "disk"), ("--logs", ""),
                            ("--logs", "64"), ("--logs", "3-1"), ("--logs", "1,"), ("--queue-mib", "127"),
                            ("--queue-mib", "1e3"), ("--seed", "-1"), ("--data", "")):
            line = self.refused(2, *NODE, "--data", self.data, flag, value)
            self.assertIn(flag, line)
            self.assertIn("--help", line)
        self.assertFalse(os.path.exists(self.data))

    def test_unknown_flag(self):
        self.assertIn("do you mean --log-delay?", self.refused(2, *MEMORY, "--log-dely", 3))
        self.assertIn("'--what'", self.refused(2, *MEMORY, "--what"))
        self.assertIn("'-x'", self.refused(2, *MEMORY, "-x"))
        self.assertIn("'more'", self.refused(2, *MEMORY, "more"))
        self.assertIn("--id needs a value", self.refused(2, "--id"))
        self.assertIn("--help takes no value", self.refused(2, "--help=x"))

    def test_missing_flags(self):
        self.assertIn("--id is missing", self.refused(2, "--run-id", RUN, "--store", "memory"))
        self.assertIn("--run-id is missing", self.refused(2, "--id", 1, "--store", "memory"))
        self.assertIn("--data is missing", self.refused(2, *NODE))
        self.assertIn("--data has no meaning", self.refused(2, *MEMORY, "--data", self.data))


class Environment(Case):
    """What the machine denies: exit code 3, the line names the thing, and records stay."""

    def keep_a_record(self):
        node = self.rocksdb()
        self.assertEqual(node.ctl("log", 0, "vote", "0:1:1")["answer"], "VOTE_YES")
        return node

    def check_record(self, node):
        self.assertEqual([record["txn"] for record in node.scan()], ["0:1:1"])

    def test_port_in_use(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            line = self.refused(3, *MEMORY, "--listen", f"127.0.0.1:{port}")
            self.assertIn(f"port {port} on 127.0.0.1 is in use", line)

    def test_port_of_another_node(self):
        node = self.keep_a_record()
        line = self.refused(3, *NODE, "--data", os.path.join(self.base, "other"), "--listen", node.address)
        self.assertIn(node.address.split(":")[1], line)
        self.check_record(node)

    def test_strange_host(self):
        self.assertIn("host.invalid", self.refused(3, *MEMORY, "--listen", "host.invalid:0"))

    def test_locked_directory(self):
        node = self.keep_a_record()
        line = self.refused(3, *NODE, "--data", self.data)
        self.assertIn(f"{self.data} is in use by another process", line)
        self.check_record(node)
        self.assertEqual(node.stop(), 0)
        self.check_record(self.rocksdb())

    def test_missing_parent(self):
        line = self.refused(3, *NODE, "--data", os.path.join(self.base, "no", "data"))
        self.assertIn(os.path.join(self.base, "no", "data"), line)
        self.assertIn("No such file", line)

    def test_not_a_directory(self):
        with open(self.data, "w", encoding="ascii") as file:
            file.write("mine")
        self.assertIn(self.data, self.refused(3, *NODE, "--data", self.data))
        with open(self.data, encoding="ascii") as file:
            self.assertEqual(file.read(), "mine")

    def test_foreign_run_or_node(self):
        self.assertEqual(self.keep_a_record().stop(), 0)
        line = self.refused(3, "--id", 1, "--run-id", "other", "--data", self.data)
        for word in (self.data, f"'{RUN}'", "'other'"):
            self.assertIn(word, line)
        line = self.refused(3, "--id", 2, "--run-id", RUN, "--data", self.data)
        self.assertIn("storage node 1", line)
        self.assertIn("storage node 2", line)
        self.check_record(self.rocksdb())

    def test_newest_log_file_removed(self):
        node = self.keep_a_record()
        node.process.kill()
        node.wait()
        newest = max(glob.glob(os.path.join(self.data, "*.log")))
        os.rename(newest, os.path.join(self.base, "kept"))
        line = self.refused(3, *NODE, "--data", self.data)
        self.assertIn(f"{self.data}/*.log", line)
        os.rename(os.path.join(self.base, "kept"), newest)
        self.check_record(self.rocksdb())

    def test_flipped_byte_in_newest_log_file(self):
        """At every tenth byte: a refusal that names the directory, or all records are there; never silently fewer."""
        node = self.rocksdb()
        for sequence in range(3):
            node.ctl("log", 0, "vote", f"0:1:{sequence}", "--redo", "x" * 50)
        node.process.kill()
        node.wait()
        newest = max(glob.glob(os.path.join(self.data, "*.log")))
        with open(newest, "rb") as file:
            good = file.read()
        refusals = 0
        for at in range(0, len(good), max(1, len(good) // 12)):
            with open(newest, "wb") as file:
                file.write(good[:at] + bytes([good[at] ^ 0x40]) + good[at + 1:])
            process = subprocess.Popen([STORAGE, *map(str, NODE), "--data", self.data], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
            line = process.stdout.readline()
            if line:
                process.kill()
                process.communicate()
                self.fail(f"byte {at} of {len(good)} flipped, and the node serves: {line}")
            _, errors = process.communicate()
            self.assertEqual(process.returncode, 3, errors)
            self.assertIn(self.data, errors)
            self.assertEqual(len(errors.splitlines()), 1, errors)
            refusals += 1
        self.assertGreater(refusals, 10)
        with open(newest, "wb") as file:
            file.write(good)
        self.assertEqual(len(self.rocksdb().scan()), 3)

    def test_damaged_side_file(self):
        self.assertEqual(self.keep_a_record().stop(), 0)
        acked = os.path.join(self.data, "ACKED")
        with open(acked, "rb") as file:
            good = file.read()
        with open(acked, "wb") as file:
            file.write(good[:-1])
        self.assertIn(acked, self.refused(3, *NODE, "--data", self.data))
        with open(acked, "wb") as file:
            file.write(good)
        self.check_record(self.rocksdb())


def limit_files():
    """As a shell's `ulimit -f` does: the signal that comes with a failed write is not ignored."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))


def limit_descriptors(soft, hard):
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Failing(Case):
    def test_store_fails(self):
        """Files may grow to 1 MiB only. The write that fails stops the node, and nothing acknowledged is lost."""
        node = self.rocksdb(preexec_fn=limit_files)
        stream = self.stream(node)
        acknowledged = []
        for sequence in range(64):
            stream.add(sequence, VOTE, sequence, redo=100000)
            stream.send()
            event = stream.await_(("reply", "down"))
            if event.startswith("down"):
                break
            acknowledged.append(sequence)
        self.assertEqual(node.wait(), 3)
        line = node.stderr()
        self.assertEqual(len(line.splitlines()), 1, line)
        self.assertIn(self.data, line)
        self.assertGreater(len(acknowledged), 5)
        self.assertLess(len(acknowledged), 12)
        records = {record["txn"]: record["redo_bytes"] for record in self.rocksdb().scan()}
        for sequence in acknowledged:
            self.assertEqual(records[f"0:1:{sequence}"], 100000)


class Connections(Case):
    """Connections that say nothing, more than there are descriptors: gRPC gives up accepting for good at the first that
    finds none."""

    def crowd(self, node, count):
        host, port = node.address.split(":")
        crowd = [socket.create_connection((host, int(port))) for _ in range(count)]
        for connection in crowd:
            self.addCleanup(connection.close)

    def test_more_than_the_soft_limit(self):
        node = self.rocksdb(preexec_fn=limit_descriptors(100, 1000))
        self.crowd(node, 150)
        self.assertEqual(node.ctl("log", 0, "vote", "0:1:1")["answer"], "VOTE_YES")
        self.assertEqual(node.stderr(), "")

    def test_more_than_the_hard_limit(self):
        """Nothing helps but a new start, and the node says so."""
        node = self.rocksdb(preexec_fn=limit_descriptors(100, 100))
        stream = self.stream(node)
        self.crowd(node, 150)
        while not node.stderr():
            pass
        self.assertRegex(node.stderr(), r"\Ano new connection is accepted [^\n]*ulimit -n[^\n]*\n\Z")
        stream.add(1, VOTE, 1)
        stream.send()
        self.assertEqual(stream.replies(1)[1][0], "VOTE_YES")
        self.assertEqual(node.stop(), 0)
        self.assertEqual(len(self.rocksdb().scan()), 1)


if __name__ == "__main__":
    unittest.main()

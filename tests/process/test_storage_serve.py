"""Does a storage node obey the log rule over a stream, batch its replies, answer administration while log requests wait,
fence, push back when its queue is full, and keep to its logs? On both stores where it matters."""

import unittest

from support import DECIDE_ABORT, DECIDE_COMMIT, DENY, READ, VOTE, Case


class Serve(Case):
    def stores(self):
        for name, flags in (("memory", ("--store", "memory")), ("rocksdb", ("--data", self.data))):
            with self.subTest(store=name):
                yield flags

    def test_log_rule(self):
        for flags in self.stores():
            stream = self.stream(self.node(*flags))
            for number, ask, sequence in ((1, READ, 1), (2, VOTE, 1), (3, VOTE, 1), (4, DENY, 1), (5, DECIDE_COMMIT, 1),
                                          (6, DENY, 1), (7, DECIDE_ABORT, 1), (8, DENY, 2), (9, VOTE, 2), (10, READ, 2)):
                # A repeated vote carries the same bytes: the client takes them from the id.
                stream.add(number if ask != VOTE else 2, ask, sequence, writer=0)
                stream.send()
                (found,) = stream.replies(1).items()
                expected = {1: "NONE", 2: "VOTE_YES", 3: "VOTE_YES", 4: "VOTE_YES", 5: "COMMIT", 6: "COMMIT",
                            7: "CONFLICT", 8: "ABORT", 9: "ABORT", 10: "ABORT"}[number]
                self.assertEqual(found[1][0], expected, number)

    def test_one_message_answers_a_batch(self):
        """100 appends in flight that fall due together are answered by one message, after one sync."""
        for flags in self.stores():
            node = self.node(*flags, "--log-delay", 32)
            stream = self.stream(node)
            for sequence in range(100):
                stream.add(sequence, VOTE, sequence)
            stream.send()
            replies = stream.replies(100)
            self.assertEqual({answer for answer, _ in replies.values()}, {"VOTE_YES"})
            self.assertEqual(sorted(position for _, position in replies.values()), list(range(1, 101)))
            stats = node.ctl("stats")
            self.assertEqual((stats["messages"], stats["reply_messages"], stats["batches"], stats["largest_batch"]),
                             (1, 1, 1, 100))

    def test_administration_and_reads_while_appends_wait(self):
        """The delay holds no thread: with 100 appends waiting, everything else is answered before the first of them."""
        for flags in self.stores():
            node = self.node(*flags)
            stream = self.stream(node)
            reader = self.stream(node)
            self.assertEqual(node.ctl("log", 0, "vote", "0:1:1000")["answer"], "VOTE_YES")
            self.assertEqual(node.ctl("delay", 60000)["mean_ms"], 60000)
            for sequence in range(100):
                stream.add(sequence, VOTE, sequence)
            stream.send()
            while node.ctl("stats")["queue_bytes"] == 0:
                pass
            stats = node.ctl("stats")
            self.assertEqual((stats["appended_records"], stats["streams"]), (1, 2))
            reader.add(1, READ, 1000)
            reader.add(2, READ, 5)
            reader.send()
            self.assertEqual({number: answer for number, (answer, _) in reader.replies(2).items()},
                             {1: "VOTE_YES", 2: "NONE"})
            self.assertEqual(node.ctl("read", 0, "0:1:1000")["state"], "VOTE_YES")
            self.assertEqual(len(node.scan()), 1)
            self.assertEqual(node.ctl("fence", 3)["incarnation"], 1)
            self.assertEqual(node.ctl("identify")["node"], 1)
            self.assertTrue(stream.quiet())
            node.ctl("delay", 0)
            stream.add(500, VOTE, 500)
            stream.send()
            self.assertEqual(stream.replies(1)[500][0], "VOTE_YES")
            self.assertEqual(node.stop(), 0)

    def fence_while_a_vote_waits(self, flags, delay):
        """The replies; None if the delay was over before the fence was taken, which a loaded machine may bring about."""
        node = self.node(*flags)
        stream = self.stream(node)
        first = node.ctl("fence", 0)["incarnation"]
        node.ctl("delay", delay)
        stream.add(1, VOTE, 1, incarnation=first)
        stream.add(2, DENY, 2, incarnation=first, writer=5)
        stream.send()
        while node.ctl("stats")["messages"] == 0:
            pass
        self.assertEqual(node.ctl("fence", 0)["incarnation"], first + 1)
        in_time = stream.quiet()
        replies = stream.replies(2)
        state = node.ctl("read", 0, "0:1:1")["state"]
        node.ctl("delay", 0)
        stream.add(3, VOTE, 3, incarnation=first + 1)
        stream.send()
        self.assertEqual(stream.replies(1)[3][0], "VOTE_YES")
        self.assertEqual(node.stop(), 0)
        return (replies, state) if in_time else None

    def test_fence_overtakes_a_waiting_vote(self):
        for flags in self.stores():
            found = None
            delay = 200
            while found is None and delay < 60000:
                self.data = f"{self.base}/data-{delay}"
                found = self.fence_while_a_vote_waits(("--data", self.data) if flags[0] == "--data" else flags, delay)
                delay *= 4
            self.assertIsNotNone(found, "the fence was never taken while the vote waited: inconclusive")
            replies, state = found
            self.assertEqual((replies[1], state), (("FENCED", 0), "NONE"))
            # A denial that is made for others isn't fenced.
            self.assertEqual(replies[2][0], "ABORT")

    def test_fence_survives_a_kill(self):
        node = self.rocksdb()
        self.assertEqual([node.ctl("fence", 7)["incarnation"] for _ in range(3)], [1, 2, 3])
        node.process.kill()
        node.wait()
        node = self.rocksdb()
        self.assertEqual(node.ctl("fence", 7)["incarnation"], 4)
        self.assertEqual(node.ctl("log", 7, "vote", "7:3:1")["answer"], "FENCED")
        self.assertEqual(node.ctl("log", 7, "vote", "7:4:1")["answer"], "VOTE_YES")

    def test_unforced_requests_are_answered(self):
        for flags in self.stores():
            node = self.node(*flags)
            self.assertEqual(node.ctl("log", 0, "deny", "0:1:1", "--no-force", "--writer", 2)["answer"], "ABORT")

    def flood(self, stream, first, messages):
        """Messages of 4 MB, each with four votes."""
        for message in range(messages):
            for part in range(4):
                stream.add(4 * message + part, VOTE, first + 4 * message + part, redo=1000000)
            stream.send()

    def await_held(self, node, count):
        """False if the queue emptied before that many messages had to wait: the delay was too short for this machine."""
        while True:
            stats = node.ctl("stats")
            if stats["held_messages"] >= count:
                return True
            if stats["appended_records"] > 0:
                return False

    def push_back(self, delay):
        node = self.node("--store", "memory", "--queue-mib", 128, "--log-delay", delay)
        stream = self.stream(node)
        self.flood(stream, 0, 45)
        if not self.await_held(node, 1):
            return False
        stats = node.ctl("stats")
        self.assertLessEqual(stats["queue_bytes"], 128 << 20)
        self.assertGreater(stats["refused_full"], 0)
        replies = stream.replies(180)
        self.assertEqual({answer for answer, _ in replies.values()}, {"VOTE_YES"})
        records = node.scan(0, "--limit", 7)
        self.assertEqual([record["redo_bytes"] for record in records], [1000000] * 7)
        self.assertEqual(node.ctl("stats")["queue_bytes"], 0)
        self.assertEqual(node.stop(), 0)
        return True

    def test_full_queue_pushes_back(self):
        """More than the queue may hold: the rest waits in its stream, all of it is answered in the end, and administration
        is answered meanwhile."""
        self.assertTrue(any(self.push_back(delay) for delay in (3000, 10000, 30000)), "never full: inconclusive")

    def test_stop_while_messages_are_held(self):
        node = self.node("--store", "memory", "--queue-mib", 128, "--log-delay", 60000)
        stream = self.stream(node)
        self.flood(stream, 0, 40)
        self.assertTrue(self.await_held(node, 1))
        self.assertEqual(node.stop(), 0)
        self.assertEqual(node.stderr(), "")
        stream.process.kill()

    def test_peer_leaves_while_its_message_is_held(self):
        node = self.node("--store", "memory", "--queue-mib", 128, "--log-delay", 60000)
        first, second, third = self.stream(node), self.stream(node), self.stream(node)
        self.flood(first, 0, 40)
        self.assertTrue(self.await_held(node, 1))
        self.flood(second, 1000, 1)
        self.assertTrue(self.await_held(node, 2))
        self.flood(third, 2000, 1)
        self.assertTrue(self.await_held(node, 3))
        second.process.kill()
        while node.ctl("stats")["streams"] > 2:
            pass
        # Whenever a batch ends, the next of the messages that are held is tried again, and held again.
        for fence in (1, 2, 3):
            self.assertEqual(node.ctl("fence", 5)["incarnation"], fence)
            self.assertTrue(self.await_held(node, 3 + fence))
        self.assertEqual(node.stop(), 0)
        self.assertEqual(node.stderr(), "")
        for stream in (first, third):
            stream.process.kill()

    def test_scan_in_pages(self):
        """Redo comes back as it was sent, over more than one message; --from and --limit cut where they say."""
        for flags in self.stores():
            node = self.node(*flags)
            stream = self.stream(node)
            for sequence in range(6):
                stream.add(sequence, VOTE, sequence, redo=1 << 20)
                stream.add(100 + sequence, VOTE, sequence, log=1, redo=8)
                stream.send()
            stream.replies(12)
            records = node.scan(0, "--hex")
            self.assertEqual([record["redo"] for record in records], [f"{n:02x}" * (1 << 20) for n in range(6)])
            self.assertEqual([record["redo"] for record in node.scan(1, "--hex")], [f"{100 + n:02x}" * 8 for n in range(6)])
            page = node.ctl("scan", 0, "--limit", 2)
            self.assertEqual([record["txn"] for record in page["records"]], ["0:1:0", "0:1:1"])
            page = node.ctl("scan", 0, "--from", page["next"])
            self.assertEqual([record["txn"] for record in page["records"]], [f"0:1:{n}" for n in range(2, 6)])
            self.assertEqual(page["next"], 0)

    def test_unknown_log(self):
        """The stream that asks is closed with a line that names log and node; nothing of its message is written."""
        node = self.node("--store", "memory", "--logs", "0,2-3")
        stream, other = self.stream(node), self.stream(node)
        stream.add(1, VOTE, 1)
        stream.add(2, VOTE, 1, log=1)
        stream.send()
        line = stream.await_("down")
        for words in ("log 1 is not served by storage node 1", "logs 0,2-3"):
            self.assertIn(words, line)
        stream.expect("up")
        self.assertEqual(node.scan(), [])
        for words in (("scan", 1), ("read", 1, "0:1:1"), ("fence", 1), ("log", 1, "vote", "0:1:1")):
            self.assertIn("log 1 is not served by storage node 1", node.ctl(*words, code=2))
        other.add(1, VOTE, 1, log=3)
        other.send()
        self.assertEqual(other.replies(1)[1][0], "VOTE_YES")

    def test_strange_run(self):
        node = self.node("--store", "memory")
        node.run_id = "other"
        line = node.ctl("identify", code=3)
        for words in ('"other"', '"test-run"', "storage node 1"):
            self.assertIn(words, line)

    def test_conflicts_do_not_flood(self):
        """All are counted; of their lines there are few, since a pipe that nobody reads would stop the node."""
        node = self.node("--store", "memory")
        stream = self.stream(node)
        count = 1 << 15
        for sequence in range(count):
            stream.add(sequence, DECIDE_COMMIT, sequence)
        stream.send()
        self.assertEqual({answer for answer, _ in stream.replies(count).values()}, {"CONFLICT"})
        self.assertEqual(node.ctl("stats")["conflicts"], count)
        lines = node.stderr().splitlines()
        self.assertEqual([line.split()[1] for line in lines], [f"{1 << bit}:" for bit in range(16)])

    def test_stats_reset(self):
        node = self.node("--store", "memory")
        node.ctl("log", 0, "vote", "0:1:1")
        self.assertEqual(node.ctl("stats", "--reset")["appended_records"], 1)
        stats = node.ctl("stats")
        self.assertEqual((stats["appended_records"], stats["messages"], stats["entries"]), (0, 0, 1))


if __name__ == "__main__":
    unittest.main()

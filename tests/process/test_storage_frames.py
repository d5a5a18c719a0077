"""Does a storage node survive malformed, truncated, random, oversized and strange messages, and are other clients left in
peace meanwhile? The seeds are fixed; a failing one is named in the message."""

import unittest

from support import READ, RUN, VOTE, Case, program, run

SEEDS = (1, 2, 3)
ROUNDS = 150


class Frames(Case):
    def test_storm(self):
        for flags in (("--store", "memory"), ("--data", self.data)):
            node = self.node(*flags)
            other = self.stream(node)
            refused = 0
            for seed in SEEDS:
                with self.subTest(seed=seed, flags=flags):
                    done = run([program("frames_client"), node.address, "1", RUN, str(seed), str(ROUNDS)])
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    _, answered, _, closed, _, oversized = done.stdout.split()
                    self.assertEqual(int(answered) + int(closed), ROUNDS)
                    self.assertGreater(int(answered), 10)
                    self.assertGreater(int(closed), 50)
                    self.assertEqual(int(oversized), 4)
                    refused += int(closed)
                other.add(seed, VOTE, seed)
                other.send()
                self.assertEqual(other.replies(1)[seed][0], "VOTE_YES")
            self.assertGreaterEqual(node.ctl("stats")["refused_messages"], refused)
            other.add(9, READ, SEEDS[0])
            other.send()
            self.assertEqual(other.replies(1)[9][0], "VOTE_YES")
            self.assertEqual(node.stop(), 0)
            self.assertEqual(node.stderr(), "")

    def test_line_of_a_refusal(self):
        node = self.node("--store", "memory")
        stream = self.stream(node)
        stream.say("raw ffff")
        line = stream.await_("down")
        self.assertIn("not a protobuf message", line)
        self.assertIn("storage node 1", line)
        stream.expect("up")


if __name__ == "__main__":
    unittest.main()

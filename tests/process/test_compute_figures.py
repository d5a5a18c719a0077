"""Are the figures of real compute nodes right? What transactions cost against the table of docs/design.md, section 3; the
books of an open loop; and a restart gives the rows back that were committed."""

import json
import os
import subprocess

from support import BUILD, CTL, PATIENCE, RUN, Case, run

COMPUTE = os.path.join(BUILD, "bin", "dogwood-compute")
NOWHERE = "127.0.0.1:1"


class Figures(Case):
    """Compute nodes over one storage node."""

    def start(self, count, *more, storage=()):
        """Addresses of so many nodes. Each connects to those before it, and needs no other address."""
        self.storage = self.node("--store", "memory", *storage, number=0)
        self.processes, self.count, self.more = [], count, more
        self.addresses = [NOWHERE] * count
        for number in range(count):
            self.compute(number)
        return self.addresses

    def compute(self, number):
        cluster = os.path.join(self.base, f"cluster-{number}")
        with open(cluster, "w", encoding="utf-8") as file:
            file.writelines(f"compute {node} {address}\n" for node, address in enumerate(self.addresses))
            file.write(f"storage 0 {self.storage.address}\n")
        words = [COMPUTE, "--id", number, "--run-id", RUN, "--cluster", cluster, "--request-timeout-ms", PATIENCE * 1000,
                 *self.more]
        for name in ("vote", "decision", "vote-request"):
            words += [f"--{name}-timeout-ms", PATIENCE * 1000]
        process = subprocess.Popen([*map(str, words)], stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.processes[number:number + 1] = [process]
        self.addresses[number] = process.stdout.readline().split()[1]

    def ctl(self, address, *words):
        done = run([CTL, "--at", address, "--run-id", RUN, "--json", *map(str, words)])
        return json.loads(done.stdout) if done.returncode == 0 else done.stderr

    def load(self, duration_ms):
        """The reports of all nodes after a load on each."""
        for address in self.addresses:
            answer = ""
            while "state" not in answer:
                answer = self.ctl(address, "begin", "--duration-ms", duration_ms)
                self.assertTrue("state" in answer or "not all peers" in answer, answer)
        for address in self.addresses:
            while self.ctl(address, "status")["state"] != "done":
                pass
        reports = [self.ctl(address, "report") for address in self.addresses]
        self.assertEqual([report["undrained"] for report in reports], [0] * self.count)
        return reports

    def check_costs(self, protocol, reports):
        sums = {name: sum(report["dist"][name] for report in reports) for name in (
            "costed", "with_writers", "only_own", "writers", "readers", "messages", "log_writes", "forced_log_writes", "acks")}
        self.assertGreater(sums["costed"], 0)
        self.assertEqual(sums["messages"], 3 * sums["writers"] + 2 * sums["readers"])
        self.assertEqual(sums["log_writes"], 2 * (sums["writers"] + sums["with_writers"]) + sums["only_own"])
        coordinator = 1 if protocol == "cornus" else 2
        self.assertEqual(sums["forced_log_writes"],
                         sums["writers"] + coordinator * sums["with_writers"] + sums["only_own"])
        self.assertEqual(sums["acks"], sums["writers"])
        return sums

    def costs(self, protocol, count, read_pct):
        settings = {"records": 2000, "accesses": 4, "read_pct": read_pct, "distributed_pct": 100, "remote_access_pct": 60}
        words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        self.start(count, "--protocol", protocol, "--threads", 2, *words)
        return self.check_costs(protocol, self.load(300))

    def test_costs_of_readers_alone(self):
        for protocol in ("cornus", "2pc"):
            for count in (2, 3):
                with self.subTest(f"{protocol}, {count} nodes"):
                    sums = self.costs(protocol, count, 100)
                    self.assertEqual((sums["writers"], sums["log_writes"]), (0, 0))
                    self.assertGreaterEqual(sums["readers"], sums["costed"])
                    self.doCleanups()
                    self.setUp()

    def test_costs_of_readers_and_writers(self):
        for protocol in ("cornus", "2pc"):
            for count in (2, 3):
                with self.subTest(f"{protocol}, {count} nodes"):
                    sums = self.costs(protocol, count, 50)
                    for name in ("writers", "readers", "only_own"):
                        self.assertGreater(sums[name], 0, name)
                    self.doCleanups()
                    self.setUp()

    def test_the_books_of_an_overloaded_open_loop(self):
        self.start(2, "--loop", "open", "--rate", 20000, "--threads", 1, "--set", "read_pct=0",
                   storage=("--log-delay", "5"))
        for report in self.load(500):
            ended = report["committed"] + report["unknown"]
            self.assertEqual(report["carried"] + report["offered"], ended + report["waiting"] + report["unfinished"])
            self.assertGreater(report["waiting"], report["offered"] / 2)
            self.assertGreater(report["waiting_us"], 0)
            dist = report["dist"]
            parts = sum(dist[f"{part}_us"] for part in ("execution", "prepare", "commit", "abort"))
            self.assertEqual(parts, dist["total_us"])
            self.assertEqual(dist["release_count"], dist["committed"])

    def test_a_restart_gives_the_rows_back(self):
        for protocol in ("cornus", "2pc"):
            with self.subTest(protocol):
                addresses = self.start(2, "--protocol", protocol, "--threads", 2, "--set", "records=200", "--set", "read_pct=0")
                self.load(200)
                before = self.ctl(addresses[1], "digest")
                self.processes[1].kill()
                self.processes[1].wait(PATIENCE)
                self.compute(1)
                self.assertEqual(self.ctl(addresses[1], "digest"), before)
                self.assertEqual((before["locks"], before["transactions"]), (0, 0))
                self.doCleanups()
                self.setUp()

"""`dogwood run`: runs an experiment, point by point and trial by trial, on a fresh cluster each time, and writes its
results folder with figures and report. See docs/experiments.md and docs/results.md."""

import json
import os
import secrets
import shlex
import shutil
import sys
import time

from dogwood_lib import analysis, cluster, experiment, machine, model, plots, report, story, summary
from dogwood_lib.arguments import quote
from dogwood_lib.bench_log import MAX_OTHERS_SHARE
from dogwood_lib.errors import GOOD, VIOLATION, AskedWrongly, EnvironmentFailure, Failure, Inconclusive
from dogwood_lib.programs import ROOT, build_dir, find_program
from dogwood_lib.results import ResultsFolder
from dogwood_lib.table import format_count, format_rate, format_us

PROGRESS_SECONDS = 1.0
# What a run takes besides warm-up and measuring; an estimate for people, not a bound.
OVERHEAD_SECONDS = 3.0
# After the measured window a node waits for its transactions' ends; beyond this it is taken to hang.
DRAIN_TIMEOUTS = 30
DRAIN_SECONDS = 30


def add_arguments(parser):
    parser.add_argument("experiment", metavar="EXPERIMENT.toml", help="what to run; see docs/experiments.md")
    parser.add_argument("-s", dest="overrides", action="append", default=[], metavar="KEY=VALUE",
                        help="overrides a key; the value is TOML, a list is a sweep; may be given several times")
    parser.add_argument("--out", metavar="DIR", help="results folder; default results/NAME")
    parser.add_argument("--dry-run", action="store_true", help="only tell what would be run, and for how long")
    parser.add_argument("--resume", action="store_true", help="go on with a run that was ended; its trials are kept")
    parser.add_argument("--build", metavar="DIR", help="build folder; default $DW_BUILD_DIR or build/")
    machine.add_awake_argument(parser)
    parser.add_argument("--no-figures", action="store_true", help="draw nothing; needs no matplotlib")


def out_folder(given, name):
    return os.path.abspath(given or os.path.join(ROOT, "results", name))


def seconds_text(seconds):
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def count_of(count, noun):
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def estimate_seconds(runs):
    return sum(point["warmup_s"] + point["duration_s"] + OVERHEAD_SECONDS for point, _ in runs)


def print_plan(plan, out):
    """What --dry-run tells."""
    runs = plan.schedule()
    print(f"{plan.name}: {count_of(len(plan.points), 'point')}, {count_of(plan.trials, 'trial')} each: {len(runs)} runs, about "
          f"{seconds_text(estimate_seconds(runs))}, into {out}")
    for number, (point, trial) in enumerate(runs, 1):
        print(f"  {number:{len(str(len(runs)))}}  {plan.label(point)}  trial {trial}")


class Trials:
    """The finished trials in a results folder, one JSON file each; a file is written whole or not at all."""

    def __init__(self, folder):
        self.folder = folder

    def path(self, slug):
        return os.path.join(self.folder.partial, "trials", f"{slug}.json")

    def read(self, slug):
        """What was measured, or None."""
        try:
            with open(self.path(slug), encoding="utf-8") as file:
                return json.load(file)
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise EnvironmentFailure(f"{self.path(slug)} is damaged: {error}; remove it to run that trial again") from error

    def write(self, slug, record):
        self.folder.write_json(f"trials/.{slug}.tmp", record)
        os.rename(self.folder.file("trials", f".{slug}.tmp"), self.path(slug))

    def any(self):
        return os.path.isdir(self.folder.file("trials", "")) and any(
            name.endswith(".json") for name in os.listdir(self.folder.file("trials", "")))


class Runner:
    """One call of `run`."""

    def __init__(self, plan, programs, folder, floors):
        self.plan = plan
        self.programs = programs
        self.folder = folder
        self.floors = floors
        self.trials = Trials(folder)
        self.data = folder.file("data", "")
        self.runs = plan.schedule()
        self.token = secrets.token_hex(4)
        self.number = 0

    def say(self, text):
        print(text, flush=True)

    def run(self):
        """Runs what isn't there yet; returns the finished trials as (point, trial, record)."""
        finished = []
        for self.number, (point, trial) in enumerate(self.runs, 1):
            slug = self.plan.slug(point, trial)
            record = self.trials.read(slug)
            if record is None:
                self.floors.measure(trial)
                record = self._run_one(point, trial, slug)
                self.trials.write(slug, record)
                self._tell(point, trial, record)
            finished.append((point, trial, record))
        return finished

    def _head(self, point, trial):
        width = len(str(len(self.runs)))
        return f"[{self.number:{width}}/{len(self.runs)}] {self.plan.label(point)} trial {trial}"

    def _run_one(self, point, trial, slug):
        """A fresh cluster with fresh data; its logs stay, its data goes."""
        shutil.rmtree(self.data, ignore_errors=True)
        os.makedirs(self.data)
        logs = self.folder.file("logs", slug, "")
        shutil.rmtree(logs, ignore_errors=True)
        run_id = f"{self.plan.name[:32]}-{self.token}-{self.number}"
        started = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        others = machine.Others()
        try:
            with cluster.Cluster(self.programs, point, run_id, self.data, logs) as nodes:
                measured = self._measure(nodes, point, trial)
        finally:
            shutil.rmtree(self.data, ignore_errors=True)
        self._require_commits(point, trial, measured["reports"], logs)
        return {"point": point, "trial": trial, "run_id": run_id, "started": started,
                "others_cpu_share": round(others.share(), 3), **measured}

    def _measure(self, nodes, point, trial):
        storage_cpu_us = None
        begun = time.monotonic()
        nodes.begin()
        window = begun + point["warmup_s"], begun + point["warmup_s"] + point["duration_s"]
        marks = list(window)
        cpu = []
        last = Progress(self._head(point, trial), self.say)
        next_line = begun + PROGRESS_SECONDS
        give_up = window[1] + DRAIN_SECONDS + DRAIN_TIMEOUTS * max(point[key] for key in experiment.TIMEOUTS) / 1000
        while True:
            now = time.monotonic()
            if marks and now >= marks[0]:
                marks.pop(0)
                cpu.append(nodes.storage_cpu_us())
                continue
            if now >= next_line or (not marks and now >= window[1]):
                states = nodes.status()
                if all(state["state"] == "done" for state in states):
                    break
                if now >= next_line:
                    last.line(states, now)
                    next_line += PROGRESS_SECONDS * max(1, int((now - next_line) / PROGRESS_SECONDS) + 1)
                if now > give_up:
                    self._give_up(states, nodes)
            due = min([next_line, *marks[:1]]) if now < window[1] else now + 0.1
            nodes.wait(max(0.001, due - time.monotonic()))
        reports = nodes.reports()
        if len(cpu) == 2:
            storage_cpu_us = cpu[1] - cpu[0]
        return {"reports": reports, "states": states, "storage_cpu_us": storage_cpu_us}

    def _give_up(self, states, nodes):
        slow = next(state for state in states if state["state"] != "done")
        raise Inconclusive(f"compute-{slow['node']} is still {quote(slow['state'])} long after the measured time, with "
                           f"{slow['in_doubt']} in doubt; its log is {nodes.compute[slow['node']].log_path}")

    def _require_commits(self, point, trial, reports, logs):
        if sum(report["committed"] for report in reports) > 0:
            return
        aborted = sum(report["aborted"] for report in reports)
        mend = f"{format_count(aborted)} attempts were aborted; lower ycsb.theta or threads, or lengthen duration_s" \
            if aborted else "lengthen duration_s beyond two log delays, and look at the logs in " + logs.rstrip("/")
        raise Inconclusive(f"no transaction committed in {self.plan.label(point)} trial {trial}: {mend}")

    def _tell(self, point, trial, record):
        """The closing line of a trial."""
        row = summary.row_of(point, trial, record["reports"], None)
        parts = [f"{format_rate(row['throughput_tps'])} commits/s"]
        if row["dist_committed"]:
            parts += [f"mean {format_us(row['dist_mean_us'])}", f"p99 {format_us(row['dist_p99_us'])}"]
        elif row["local_committed"]:
            parts += [f"local mean {format_us(row['local_mean_us'])}", f"p99 {format_us(row['local_p99_us'])}"]
        parts.append(f"{row['abort_pct']:.1f} % aborted")
        if record["others_cpu_share"] > MAX_OTHERS_SHARE:
            parts.append(f"DISTURBED: others had {100 * record['others_cpu_share']:.0f} % of the processors")
        self.say(f"{self._head(point, trial)}: {', '.join(parts)}")
        for warning in warnings_of(row, record["reports"]):
            self.say(f"{self._head(point, trial)}: WARNING: {warning}")


def warnings_of(row, reports):
    """What a trial's figures leave out, in a sentence each."""
    warnings = []
    if summary.is_overloaded(reports):
        warnings.append(f"overloaded: {format_count(row['waiting'])} of {format_count(summary.due_of(reports))} transactions "
                        f"that were due still waited for a worker at the end of the measured time, the first of them for "
                        f"{format_us(row['waiting_max_us'])}; they are in no latency")
    if row["undrained"]:
        warnings.append(f"{format_count(row['undrained'])} transactions had not ended when the nodes gave up waiting; what "
                        f"they cost is in no figure, or in part")
    return warnings


class Progress:
    """A line a second while a trial runs."""

    def __init__(self, head, say):
        self.head = head
        self.say = say
        self.begun = self.then = time.monotonic()
        self.before = {"committed": 0, "aborted": 0}

    def line(self, states, now):
        sums = {name: sum(state[name] for state in states) for name in ("committed", "aborted", "in_doubt", "blocked")}
        span = max(now - self.then, 1e-3)
        rates = {name: max(0, sums[name] - self.before[name]) / span for name in self.before}
        busy = [state for state in states if state["p99_us"] > 0]
        p50 = sum(state["p50_us"] for state in busy) / len(busy) if busy else None
        p99 = max((state["p99_us"] for state in busy), default=None)
        phase = min((state["state"] for state in states), key=PHASES.index)
        self.say(f"{self.head}  {now - self.begun:3.0f} s {phase:9}  {rates['committed']:7,.0f} commits/s "
                 f"{rates['aborted']:6,.0f} aborts/s  in doubt {sums['in_doubt']}  blocked {sums['blocked']}  "
                 f"p50 {format_us(p50) or '-'}  p99 {format_us(p99) or '-'}")
        self.before = {name: sums[name] for name in self.before}
        self.then = now


PHASES = ["idle", "warmup", "measuring", "draining", "done"]


def alarms_of(finished):
    """Alarm -> how often, over all trials."""
    counts = {}
    for _, _, record in finished:
        for report in record["reports"]:
            for name, count in report.get("alarms", {}).items():
                if count:
                    counts[name] = counts.get(name, 0) + count
    return counts


def check_same(folder, plan, trials):
    """A resumed run must be the run that was begun, or its trials would not belong together."""
    path = folder.file("config.toml")
    if not os.path.exists(path) or not trials.any():
        return
    with open(path, encoding="utf-8") as file:
        before = file.read().splitlines()
    differing = [line for line in plan.to_toml().splitlines() if line not in before]
    if differing:
        raise AskedWrongly(f"{folder.partial} was begun otherwise, not with {differing[0]}; run it as it was begun, give "
                           f"another --out, or remove it")


def check_awake(folder, awake):
    """Trials with and without sleeping processors must not be compared."""
    path = folder.file("awake.json")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            before = json.load(file)
        if before["processors_kept_awake"] != awake.kept:
            raise AskedWrongly(f"{folder.partial} was begun otherwise: {machine.awake_line(before)}; resume it that way, "
                               f"{'without' if before['processors_kept_awake'] else 'with'} --let-sleep")
    folder.write_json("awake.json", awake.facts())


class Floors:
    """The floors, measured anew before each round of trials, so that they know the same disk as the trials. A resumed run
    keeps those that it has."""

    def __init__(self, folder, plan, build, say):
        self.folder = folder
        self.plan = plan
        self.build = build
        self.say = say
        self.path = folder.file("floors.json")
        self.rounds = {}
        if os.path.exists(self.path):
            with open(self.path, encoding="utf-8") as file:
                self.rounds = json.load(file)

    def measure(self, trial):
        if str(trial) in self.rounds:
            return
        found = model.measure(self.plan, self.build, self.folder.file("data", ""), self.folder.file("logs", "floors"))
        self.rounds[str(trial)] = found
        self.folder.write_json("floors.json", self.rounds)
        self.say(f"floors: empty round trip {format_us(found['round_trip_us'])}, write to the log " + ", ".join(
            f"{format_us(value)} ({name.replace('_', ' ')})" for name, value in found["log_append_us"].items()) + " on mean")

    def combined(self):
        return model.combine(list(self.rounds.values()))


def write_results(folder, plan, finished, floors, facts):
    summary.write_all(folder, plan, [(point, trial, record["reports"]) for point, trial, record in finished], floors)
    storage = {plan.slug(point, trial): record["storage_cpu_us"] for point, trial, record in finished}
    others = {plan.slug(point, trial): record["others_cpu_share"] for point, trial, record in finished}
    overloaded = [plan.slug(point, trial) for point, trial, record in finished if summary.is_overloaded(record["reports"])]
    folder.write_json("meta.json", {**facts, "sync": plan.values["sync"], "floors": floors, "runs": len(finished),
                                    "overloaded": overloaded,
                                    "storage_cpu_us": storage, "others_cpu_share": others, "alarms": alarms_of(finished)})
    for leftover in ("data", "floors.json", "awake.json"):
        path = os.path.join(folder.partial, leftover)
        if os.path.isdir(path):
            shutil.rmtree(path)
        elif os.path.exists(path):
            os.unlink(path)


def command_line(given, name, out):
    """What repeats the run, from the top of the source tree. Paths outside of it are cut to their last part."""
    words = ["scripts/dogwood", "run", short_path(given.experiment)]
    for text in given.overrides:
        words += ["-s", text]
    if out != out_folder(None, name):
        words += ["--out", short_path(out)]
    return shlex.join(words)


def short_path(path):
    path = os.path.realpath(path)
    return os.path.relpath(path, ROOT) if path.startswith(ROOT + os.sep) else os.path.basename(path)


def run(given):
    plan = experiment.load(given.experiment, given.overrides)
    out = out_folder(given.out, plan.name)
    if given.dry_run:
        print_plan(plan, out)
        return GOOD
    build = build_dir(given.build)
    programs = cluster.find_programs(build)
    for name in model.FLOOR_PROGRAMS:
        find_program(name, build)
    if not given.no_figures:
        plots.require()
    with ResultsFolder(out, resume=given.resume) as folder:
        check_same(folder, plan, Trials(folder))
        folder.write_text("config.toml", plan.to_toml())
        facts = {**machine.meta(build, folder.file("data", "")), "command": command_line(given, plan.name, out),
                 "name": plan.name}
        say = lambda text: print(text, flush=True)  # noqa: E731 (one line, passed on)
        say(f"{plan.name}: {len(plan.schedule())} runs, about {seconds_text(estimate_seconds(plan.schedule()))}")
        floors = Floors(folder, plan, build, say)
        try:
            with machine.Awake(not given.let_sleep) as awake:
                check_awake(folder, awake)
                facts.update(awake.facts())
                say(machine.awake_line(facts))
                finished = Runner(plan, programs, folder, floors).run()
        except Failure as failure:
            raise type(failure)(f"{failure}; what is done is kept, --resume goes on") from failure
        write_results(folder, plan, finished, floors.combined(), facts)
        results = analysis.Results(folder.partial)
        if not given.no_figures:
            plots.draw_all(results)
        report.write(results)
        text = story.tell(results)
        published = folder.publish()
    print(f"\n{text}\n\nThe report is {os.path.join(published, 'report.html')}")
    alarms = alarms_of(finished)
    if alarms:
        print(f"dogwood run: alarms: {', '.join(f'{name} {count}' for name, count in alarms.items())}; a protocol rule "
              f"was broken, see {os.path.join(published, 'logs')}", file=sys.stderr)
        return VIOLATION
    return GOOD

"""`dogwood up`: starts a cluster that stays in the background, for experiments by hand with dogwood-ctl."""

import json
import os
import secrets
import shutil
import signal
import sys

from dogwood_lib import cluster, experiment, state
from dogwood_lib.errors import AskedWrongly, EnvironmentFailure, Failure
from dogwood_lib.experiment_keys import spell
from dogwood_lib.programs import build_dir
from dogwood_lib.table import render

KEEPER_LOG = "keeper.log"


def add_arguments(parser):
    parser.add_argument("experiment", nargs="?", metavar="EXPERIMENT.toml",
                        help="what to start; default: all defaults, protocol cornus")
    parser.add_argument("-s", dest="overrides", action="append", default=[], metavar="KEY=VALUE", help="overrides a key")
    parser.add_argument("--dir", metavar="DIR", help="where data, logs and process ids are kept; default results/.up")
    parser.add_argument("--build", metavar="DIR", help="build folder; default $DW_BUILD_DIR or build/")


def single_point(plan):
    """The one point of an experiment without sweeps. Of several protocols the first is meant."""
    swept = [key for key in plan.swept() if key != "protocol"]
    if swept:
        key = swept[0]
        raise AskedWrongly(f"one cluster has one {key}; choose, e.g. -s {key}={spell(plan.values[key][0])}")
    return plan.points[0]


def prepare_folder(path):
    """Empty, and ours; refuses if a cluster is up in it, or somebody's files."""
    before = state.load(path)
    if before and state.is_alive(before["keeper"]):
        raise EnvironmentFailure(f"a cluster is up in {path}; stop it with scripts/dogwood down, or give another --dir")
    if before is None and os.path.isdir(path) and os.listdir(path):
        raise AskedWrongly(f"{path} holds something else; give another --dir")
    try:
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
    except OSError as error:
        raise EnvironmentFailure(f"{path} cannot be made: {error.strerror}") from error


def keep(programs, point, path, run_id, announce):
    """The keeper's life: starts the nodes, announces them, and holds them until it is asked to end."""
    with cluster.Cluster(programs, point, run_id, os.path.join(path, "data"), os.path.join(path, "logs")) as nodes:
        kept = [{"name": node.name, "role": node.name.split("-")[0], "address": node.address, "command": node.command,
                 "log": node.log_path, **state.identity(node.process.pid)} for node in (*nodes.compute, *nodes.storage)]
        found = {"run_id": run_id, "point": point, "ctl": programs["dogwood-ctl"], "nodes": kept,
                 "keeper": state.identity(os.getpid())}
        state.save(path, found)
        # If nobody listens any more, this fails, and the nodes are stopped.
        announce(found)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        while True:
            signal.pause()
            for node in nodes.fleet.nodes:
                node.process.poll()


def become_keeper(programs, point, path, run_id, pipe):
    """In the forked child; returns its exit code. Until the nodes are up, failures go to the parent."""
    os.setsid()
    log = os.open(os.path.join(path, KEEPER_LOG), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for descriptor, source in ((0, os.open(os.devnull, os.O_RDONLY)), (1, log), (2, log)):
        os.dup2(source, descriptor)

    def announce(message):
        os.write(pipe, (json.dumps(message) + "\n").encode())
        os.close(pipe)

    try:
        keep(programs, point, path, run_id, announce)
    except Failure as failure:
        announce({"failure": str(failure), "code": failure.code})
        return failure.code
    return 0


def start_keeper(programs, point, path, run_id):
    """Forks the keeper and waits until all nodes are up; returns what it announced."""
    sys.stdout.flush()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        code = 1
        try:
            code = become_keeper(programs, point, path, run_id, writing)
        finally:
            os._exit(code)
    os.close(writing)
    try:
        with os.fdopen(reading, encoding="utf-8") as answer:
            line = answer.readline()
    except BaseException:
        os.kill(child, signal.SIGTERM)
        raise
    found = json.loads(line) if line else {"failure": f"the keeper ended without a word; see {path}/{KEEPER_LOG}", "code": 3}
    if "failure" in found:
        failure = type("StartFailed", (Failure,), {"code": found["code"]})
        os.waitpid(child, 0)
        raise failure(found["failure"])
    return found


def run(given):
    plan = experiment.load(given.experiment, given.overrides) if given.experiment else \
        experiment.default_experiment(given.overrides)
    point = single_point(plan)
    programs = cluster.find_programs(build_dir(given.build))
    path = state.folder(given.dir)
    prepare_folder(path)
    found = start_keeper(programs, point, path, f"up-{secrets.token_hex(4)}")
    nodes = found["nodes"]
    print(f"up: {plan.label(point)}, run {found['run_id']}, in {path}\n")
    print(render(["node", "address", "process"], [[one["name"], one["address"], one["pid"]] for one in nodes]))
    print(f"\nFor example:\n  {os.path.relpath(programs['dogwood-ctl'])} --at {nodes[0]['address']} --run-id "
          f"{found['run_id']} status\n  scripts/dogwood down" + (f" --dir {given.dir}" if given.dir else ""))
    return 0

"""`dogwood status`: which nodes of the cluster that `up` started are alive, and what they do."""

from dogwood_lib import state
from dogwood_lib.control import CallFailed, Control
from dogwood_lib.errors import ENVIRONMENT, GOOD
from dogwood_lib.table import format_count, format_us, render

CALL_SECONDS = 2


def add_arguments(parser):
    parser.add_argument("--dir", metavar="DIR", help="as given to up; default results/.up")


def describe(control, node):
    """The cells after the name."""
    if not state.is_alive(node):
        return ["dead", "", "", "", "", "", ""]
    if node["role"] == "storage":
        try:
            control.call(node["address"], "identify", seconds=CALL_SECONDS)
        except CallFailed:
            return ["silent", "", "", "", "", "", ""]
        return ["up", "", "", "", "", "", ""]
    try:
        answer = control.call(node["address"], "status", seconds=CALL_SECONDS)
    except CallFailed:
        return ["silent", "", "", "", "", "", ""]
    return [answer["state"], format_count(answer["committed"]), format_count(answer["aborted"]), answer["in_doubt"],
            answer["blocked"], format_us(answer["p50_us"] or None), f"{answer['peers_up']} of {answer['peers']}"]


def run(given):
    path = state.folder(given.dir)
    found = state.load(path)
    if found is None or not state.is_alive(found["keeper"]):
        print(f"status: no cluster is up in {path}; start one with scripts/dogwood up")
        return ENVIRONMENT
    control = Control(found["ctl"], found["run_id"])
    rows = [[node["name"], node["address"], node["pid"], *describe(control, node)] for node in found["nodes"]]
    print(f"run {found['run_id']}, protocol {found['point']['protocol']}, in {path}\n")
    print(render(["node", "address", "process", "state", "committed", "aborted", "in doubt", "blocked", "p50", "peers up"],
                 rows))
    whole = all(row[3] not in ("dead", "silent") for row in rows)
    return GOOD if whole else ENVIRONMENT

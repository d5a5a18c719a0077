"""`dogwood down`: stops the cluster that `up` started, and removes its data; its logs stay until the next `up`."""

import os
import shutil

from dogwood_lib import state


def add_arguments(parser):
    parser.add_argument("--dir", metavar="DIR", help="as given to up; default results/.up")


def run(given):
    path = state.folder(given.dir)
    found = state.load(path)
    if found is None or not state.is_alive(found["keeper"]):
        print(f"down: no cluster is up in {path}")
        return 0
    alive = sum(map(state.is_alive, found["nodes"]))
    ended = state.stop(found["keeper"])
    shutil.rmtree(os.path.join(path, "data"), ignore_errors=True)
    print(f"down: {alive} nodes {'stopped' if ended else 'killed, since they did not end'}; logs are in "
          f"{os.path.join(path, 'logs')}")
    return 0

"""Where the built programs are."""

import os

from dogwood_lib.errors import EnvironmentFailure

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))


def build_dir(given=None):
    """The build folder: as given, else $DW_BUILD_DIR, else build/ in the source tree."""
    return os.path.abspath(given or os.environ.get("DW_BUILD_DIR") or os.path.join(ROOT, "build"))


def find_program(name, build):
    """The path of a built program, e.g. "dogwood-storage"."""
    path = os.path.join(build, "bin", name)
    if not os.access(path, os.X_OK):
        raise EnvironmentFailure(f"{path} is missing; build it with scripts/build, or give --build DIR")
    return path

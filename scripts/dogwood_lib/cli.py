"""The front of scripts/dogwood: the registry of commands, and what turns their failures into exit codes."""

import importlib
import os
import signal
import sys

from dogwood_lib.arguments import Parser, nearest, quote
from dogwood_lib.errors import ASKED_WRONGLY, AskedWrongly, Failure

# Command -> (module, what it does). A name may have several words. The module has add_arguments(parser) and
# run(arguments), which returns an exit code or raises a Failure. It is imported only when its command is called.
COMMANDS = {
    "run": ("dogwood_lib.runner", "runs an experiment and writes its results, with figures and a report"),
    "plot": ("dogwood_lib.plots", "draws the figures of a results folder again"),
    "report": ("dogwood_lib.report", "writes the page of a results folder again"),
    "up": ("dogwood_lib.up", "starts a cluster that stays in the background, for experiments by hand"),
    "down": ("dogwood_lib.down", "stops that cluster"),
    "status": ("dogwood_lib.status", "tells what that cluster does"),
    "doctor": ("dogwood_lib.doctor", "looks for what would keep a cluster from running here, and names the mend"),
    "bench log": ("dogwood_lib.bench_log", "measures a storage node's log beside the floors of disk and transport"),
}


def usage(commands):
    width = max(map(len, commands))
    lines = [f"  {name:{width}}  {purpose}" for name, (_, purpose) in commands.items()]
    return "\n".join(["usage: dogwood COMMAND [flags]; dogwood COMMAND --help tells its flags", *lines])


def find_command(argv, commands):
    """(name, its arguments); the longest name that the words begin with. Raises AskedWrongly."""
    words = []
    for word in argv:
        if word.startswith("-"):
            break
        words.append(word)
    for count in range(len(words), 0, -1):
        name = " ".join(words[:count])
        if name in commands:
            return name, argv[count:]
    if not words:
        raise AskedWrongly(f"no command given; there are: {', '.join(commands)}")
    inner = [name for name in commands if name.startswith(words[0] + " ")]
    if len(words) == 1 and inner:
        raise AskedWrongly(f"{quote(words[0])} is only the beginning of: {', '.join(inner)}")
    asked = " ".join(words[:max(len(name.split()) for name in commands)])
    raise AskedWrongly(f"unknown command {quote(asked)}{nearest(asked, list(commands))}; there are: "
                       f"{', '.join(commands)}")


def run_command(name, argv, commands):
    module = importlib.import_module(commands[name][0])
    parser = Parser(prog=f"dogwood {name}", description=module.__doc__)
    module.add_arguments(parser)
    return module.run(parser.parse_args(argv))


class Ended(BaseException):
    """A signal asks the launcher to end; it unwinds, so that nodes are stopped and files removed."""

    def __init__(self, number):
        super().__init__(number)
        self.number = number


def end(number, frame):
    del frame
    raise Ended(number)


def main(argv, commands=None):
    """Runs a command and returns the exit code."""
    commands = COMMANDS if commands is None else commands
    prefix = "dogwood"
    if argv and argv[0] in ("-h", "--help", "help"):
        print(usage(commands))
        return 0
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, end)
    try:
        name, rest = find_command(argv, commands)
        prefix = f"dogwood {name}"
        return run_command(name, rest, commands)
    except Failure as failure:
        print(f"{prefix}: {failure}", file=sys.stderr)
        return failure.code
    except Ended as ended:
        print(f"{prefix}: ended by {signal.Signals(ended.number).name}", file=sys.stderr)
        return 128 + ended.number
    except BrokenPipeError:
        # Whoever read the output has gone; what Python still holds of it has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ASKED_WRONGLY

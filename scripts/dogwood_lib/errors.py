"""The exit codes of docs/design.md, section 7, and the exceptions that lead to them. A message is one line that names the
thing and the mend."""

GOOD = 0
VIOLATION = 1
ASKED_WRONGLY = 2
ENVIRONMENT = 3
INCONCLUSIVE = 4


class Failure(Exception):
    """Ends a command with one line on stderr and an exit code."""
    code = ENVIRONMENT


class AskedWrongly(Failure):
    """Flag, key, range, records mismatch, results folder exists."""
    code = ASKED_WRONGLY


class EnvironmentFailure(Failure):
    """Port, lock, run id, missing program, a node died that nobody killed."""
    code = ENVIRONMENT


class Inconclusive(Failure):
    """Nothing committed, fault not observed, limits reached."""
    code = INCONCLUSIVE

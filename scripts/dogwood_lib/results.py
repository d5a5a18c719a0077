"""The folder of one run's results: written as `.<name>.partial/`, renamed to `<name>/` at the end, never overwritten, and
written by one launcher at a time.

The lock is a flock on a file inside the partial folder: the kernel frees it when its holder dies, and a folder comes
into being with its lock already held, so that no second launcher can slip in between."""

import csv
import fcntl
import json
import os
import shutil
import tempfile

from dogwood_lib.errors import AskedWrongly, EnvironmentFailure

LOCK = "lock"


def _lock(path):
    """Opens and locks a file; None if somebody else holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


class ResultsFolder:
    """A `with` block around a run: `publish` at its end, else the partial folder is left for a look.

    `resume` tells what happens to a partial folder that an ended launcher left: True goes on in it (`resumed` is then
    true), False refuses it and names --resume, None is for commands that cannot go on."""

    def __init__(self, path, resume=None):
        self.path = os.path.abspath(path)
        self.resume = resume
        self.resumed = False
        parent, name = os.path.split(self.path)
        self.partial = os.path.join(parent, f".{name}.partial")
        self._refuse_existing()
        try:
            os.makedirs(parent, exist_ok=True)
            self._lock = self._create(parent, name)
        except OSError as error:
            raise EnvironmentFailure(f"{parent} cannot be written: {error.strerror}") from error

    def _refuse_existing(self):
        if os.path.lexists(self.path):
            raise AskedWrongly(f"{self.path} exists and is not overwritten; give another --out, or remove it")

    def _create(self, parent, name):
        fresh = tempfile.mkdtemp(prefix=f".{name}.", dir=parent)
        os.chmod(fresh, 0o755)
        descriptor = _lock(os.path.join(fresh, LOCK))
        os.write(descriptor, f"{os.getpid()}\n".encode())
        try:
            # Fails if the target is there, since a partial folder is never empty.
            os.rename(fresh, self.partial)
        except OSError:
            os.close(descriptor)
            shutil.rmtree(fresh)
            return self._take_partial()
        return descriptor

    def _take_partial(self):
        """The lock of a partial folder whose launcher has ended, if it is to be resumed; else refuses."""
        path = os.path.join(self.partial, LOCK)
        if not os.path.isfile(path):
            raise AskedWrongly(f"{self.partial} is in the way; remove it, or give another --out")
        with open(path, encoding="ascii") as file:
            holder = file.read().strip()
        descriptor = _lock(path)
        if descriptor is None:
            raise EnvironmentFailure(f"{self.path} is being written by process {holder}; wait for it, or give another "
                                     f"--out")
        if self.resume and os.path.exists(path) and os.path.samestat(os.fstat(descriptor), os.stat(path)):
            os.truncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
            self.resumed = True
            return descriptor
        os.close(descriptor)
        hint = "" if self.resume is None else "go on with --resume, "
        raise AskedWrongly(f"{self.partial} is left of a run that did not end; {hint}remove it, or give another --out")

    def __enter__(self):
        return self

    def __exit__(self, *reason):
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def file(self, *names):
        """The path of a file in the partial folder; the folders on the way are made."""
        path = os.path.join(self.partial, *names)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def write_text(self, name, text):
        with open(self.file(name), "w", encoding="utf-8") as file:
            file.write(text)

    def write_json(self, name, value):
        self.write_text(name, json.dumps(value, indent=2) + "\n")

    def write_csv(self, name, columns, rows):
        """Rows are dicts; what is absent or None stays empty."""
        with open(self.file(name), "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, columns, restval="", extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)

    def write_toml(self, name, values):
        """Flat keys with strings, numbers, booleans and lists of these, which TOML spells as JSON does."""
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in values.items() if value is not None]
        self.write_text(name, "".join(lines))

    def publish(self):
        """The run is whole: gives the folder its name, and returns it."""
        self._refuse_existing()
        os.rename(self.partial, self.path)
        os.unlink(os.path.join(self.path, LOCK))
        return self.path

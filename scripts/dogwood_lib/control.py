"""Calls to running nodes through dogwood-ctl, one JSON object each."""

import json
import os
import subprocess
import time

from dogwood_lib.errors import EnvironmentFailure
from dogwood_lib.processes import spawn

CALL_SECONDS = 10


class CallFailed(EnvironmentFailure):
    """A node didn't answer, or refused."""


class Control:
    """Calls nodes of one run."""

    def __init__(self, program, run_id):
        self.program = program
        self.run_id = run_id

    def call(self, address, *words, seconds=CALL_SECONDS):
        return self.call_all([address], *words, seconds=seconds)[0]

    def call_all(self, addresses, *words, seconds=CALL_SECONDS):
        """Calls all at once; the answers come in the order of the addresses. Raises CallFailed for the first that fails."""
        deadline = time.monotonic() + seconds
        calls = [(address, self._start(address, words)) for address in addresses]
        answers = []
        try:
            for address, process in calls:
                answers.append(self._finish(address, words, process, deadline))
        finally:
            for _, process in calls:
                _close(process)
        return answers

    def _start(self, address, words):
        command = [self.program, "--at", address, "--run-id", self.run_id, "--json", *map(str, words)]
        return spawn(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def _finish(self, address, words, process, deadline):
        try:
            output, errors = process.communicate(timeout=max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired as error:
            raise CallFailed(f"the node at {address} does not answer {words[0]}; is it stopped?") from error
        if process.returncode != 0:
            lines = errors.strip().splitlines()
            raise CallFailed(lines[-1] if lines else f"{words[0]} at {address} failed without a word")
        try:
            return json.loads(output)
        except ValueError as error:
            name = os.path.basename(self.program)
            raise CallFailed(f"{name} {words[0]} printed no JSON for {address}: {output.strip()[:60]!r}") from error


def _close(process):
    if process.poll() is None:
        process.kill()
    process.wait()
    process.stdout.close()
    process.stderr.close()

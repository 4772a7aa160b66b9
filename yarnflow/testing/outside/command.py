"""The command ``yarnflow`` as a script that answers what a test says, and notes how it was called."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

#: verb of a submit that only looks, and finds all good as long as no test says otherwise
DRY_RUN: Final = "submit --dry-run"
_SCRIPT: Final = """\
#!{python} -IS
import json, os, signal, sys
here = {directory!r}
arguments = sys.argv[1:]
verb = arguments[0]
if "--dry-run" in arguments:
    verb = {dry_run!r}
with open(os.path.join(here, "calls"), "a") as calls:
    calls.write(json.dumps([verb, arguments, dict(os.environ)]) + "\\n")
answers = os.path.join(here, verb)
numbers = sorted(int(name) for name in os.listdir(answers)) if os.path.isdir(answers) else []
if not numbers and verb == {dry_run!r}:
    print("{{}}")
    sys.exit()
if not numbers:
    print(json.dumps({{"error": {{"code": "USAGE", "message": "the test has no answer to " + verb,
                                 "exit_status": 2, "retryable": False}}}}), file=sys.stderr)
    sys.exit(2)
path = os.path.join(answers, str(numbers[0]))
with open(path) as file:
    answer = json.load(file)
if len(numbers) > 1:
    os.remove(path)
for line in answer["notes"]:
    print(line, file=sys.stderr, flush=True)
if answer["hangs"]:
    def end(number, frame):
        # the signal of a parent's death comes once for each of its threads that end one after the other
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with open(os.path.join(here, "terminated"), "a") as ended:
            ended.write(verb + "\\n")
        sys.exit(143)
    signal.signal(signal.SIGTERM, end)
    open(os.path.join(here, "hanging"), "w").close()
    while True:
        signal.pause()
if answer["error"]:
    if answer["document"] is not None:
        print(json.dumps(answer["document"]))
    print(json.dumps({{"error": answer["error"]}}), file=sys.stderr)
    sys.exit(answer["error"]["exit_status"])
print(json.dumps(answer["document"]))
"""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the command."""

    #: :data:`DRY_RUN` for a submit with that flag
    verb: str
    arguments: list[str]
    environ: dict[str, str]


class FakeCommand:
    """The command in a directory of its own.

    Parameters
    ----------
    directory : Path
        Empty, and the test's.
    """

    def __init__(self, directory: Path) -> None:
        self._directory: Final = directory
        self.path: Final = directory / "yarnflow"
        self.path.write_text(_SCRIPT.format(python=sys.executable, directory=str(directory), dry_run=DRY_RUN))
        self.path.chmod(0o755)
        self._number = 0

    def answers(
        self,
        verb: str,
        document: Any = None,
        *,
        error: tuple[str, str] | None = None,
        details: str = "",
        notes: tuple[str, ...] = (),
        hangs: bool = False,
    ) -> None:
        """The next answer to a verb; the last one is given for ever.

        Parameters
        ----------
        error : (str, str), optional
            Code and message; with a document, that of what was done before.
        hangs : bool
            It never ends by itself; told to end, it notes that.
        """
        folder = self._directory / verb
        folder.mkdir(exist_ok=True)
        self._number += 1
        said = None
        if error is not None:
            said = {"code": error[0], "message": error[1], "exit_status": 40, "retryable": False}
            if details:
                said["details"] = details
        answer = {"document": document, "error": said, "notes": list(notes), "hangs": hangs}
        hidden = self._directory / "answer"
        hidden.write_text(json.dumps(answer))
        os.replace(hidden, folder / str(self._number))

    def answers_instead(self, verb: str, document: Any = None, **said: Any) -> None:
        """As :meth:`answers`, in place of all other answers to the verb."""
        self.forget(verb)
        self.answers(verb, document, **said)

    def forget(self, verb: str) -> None:
        """Take back all answers to a verb."""
        for file in (self._directory / verb).glob("*"):
            file.unlink()

    @property
    def calls(self) -> list[Call]:
        """How it was called, oldest first."""
        try:
            text = (self._directory / "calls").read_text()
        except FileNotFoundError:
            return []
        # a call may be writing its line now
        lines = text[: text.rfind("\n") + 1].splitlines()
        return [Call(*json.loads(line)) for line in lines]

    def verbs(self) -> list[str]:
        """The verbs it was called with."""
        return [call.verb for call in self.calls]

    @property
    def hangs(self) -> bool:
        """Whether a call has begun to hang."""
        return (self._directory / "hanging").exists()

    @property
    def terminated(self) -> list[str]:
        """Verbs that hung, and were told to end."""
        try:
            return (self._directory / "terminated").read_text().splitlines()
        except FileNotFoundError:
            return []

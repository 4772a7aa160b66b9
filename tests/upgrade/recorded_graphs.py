"""Programs whose job graphs are recorded, and what they are to a cluster: the bytes that it stores.

The job's id, which is random, is taken out before.  Functions are pickled, code included, so their bytes
are those of a version of Python and of cloudpickle, and name the file of the program: they are recorded,
to be loaded, and left out where bytes are compared.  So is a script, which is in its submission as it is.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from tests.package_modules import ROOT
from yarnflow.cli.info import first_graph
from yarnflow.client.executor import graph_submission, script_submission
from yarnflow.client.programs.program import load_program
from yarnflow.config.configuration import Configuration
from yarnflow.core.ids import JobId
from yarnflow.core.json_codec import to_json
from yarnflow.graph.closures import Closure
from yarnflow.graph.codec import job_graph_from_json, job_graph_to_json

DATA: Final = Path(__file__).parent / "data"
#: the version whose graphs are recorded
VERSION: Final = "797657a"
_JOB_ID: Final = JobId("0" * 32)
#: fields of a submission that came after that version, and what it means by leaving them out
_LATER_FIELDS: Final = {"program_digest": "", "earlier_job_key": ""}
_STATE_PROGRAMS: Final = ROOT / "integration/upgrade/programs"
_EXAMPLES: Final = ROOT / "examples"


@dataclass(frozen=True)
class RecordedProgram:
    """A program, and the file of what it submits."""

    name: str
    path: Path
    arguments: tuple[str, ...]

    @property
    def file(self) -> Path:
        """Return the file of what was recorded."""
        return DATA / VERSION / f"{self.name}.json"

    def submitted(self, directory: Path) -> str:
        """Return what it submits now.

        Parameters
        ----------
        directory : Path
            Where it is copied to, and run.
        """
        with _process_as_it_was():
            program = load_program(str(shutil.copy(self.path, directory)), self.arguments)
            graph = first_graph(program, Configuration.empty())
            if graph is None:
                submission = script_submission(program, configuration={}, parallelism=1)
            else:
                submission = graph_submission(graph, configuration={})
        named = replace(job_graph_from_json(submission.job_graph_json), job_id=_JOB_ID)
        submission = replace(submission, job_id=_JOB_ID, job_graph_json=job_graph_to_json(named))
        return to_json(submission) + "\n"


def programs() -> Iterator[RecordedProgram]:
    """Yield the examples that are programs, and the programs whose state is recorded."""
    places = "--input", "/in", "--output", "/out"
    yield RecordedProgram("example_flight_delays", _EXAMPLES / "flight_delays.py", places)
    yield RecordedProgram("example_live_delays", _EXAMPLES / "airflow/programs/live_delays.py", places)
    yield RecordedProgram("example_plain_pyspark", _EXAMPLES / "plain_pyspark.py", places)
    yield RecordedProgram("example_word_count", _EXAMPLES / "word_count.py", places)
    yield RecordedProgram("example_word_count_printed", _EXAMPLES / "word_count.py", places[:2])
    for path in sorted(_STATE_PROGRAMS.glob("*.py")):
        yield RecordedProgram(path.stem, path, ("/in", "/out"))


def record(directory: Path) -> None:
    """Record what is missing; the programs run in a directory, which functions will name for ever."""
    (DATA / VERSION).mkdir(parents=True, exist_ok=True)
    for program in programs():
        if not program.file.exists():
            program.file.write_text(program.submitted(directory), encoding="utf-8")


def comparable(submitted: str) -> str:
    """Return a submission without the bytes of functions and scripts, and without later fields not set."""
    document = json.loads(submitted)
    for name, unset in _LATER_FIELDS.items():
        if document.get(name) == unset:
            del document[name]
    graph = _without_payloads(json.loads(document["job_graph_json"]))
    document["job_graph_json"] = json.dumps(graph, separators=(",", ":"))
    document["files"] = dict.fromkeys(document["files"], "")
    return json.dumps(document, separators=(",", ":"))


def closures_in(value: object) -> Iterator[Closure]:
    """Yield the functions in an operator, or in whatever holds some."""
    if isinstance(value, Closure):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from closures_in(item)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from closures_in(getattr(value, field.name))


def _without_payloads(plain: Any) -> Any:
    if isinstance(plain, dict):
        return {key: "" if key == "payload" else _without_payloads(value) for key, value in plain.items()}
    return [_without_payloads(value) for value in plain] if isinstance(plain, list) else plain


@contextlib.contextmanager
def _process_as_it_was() -> Iterator[None]:
    """Undo what running a program changes in this process."""
    path, arguments, main = list(sys.path), list(sys.argv), sys.modules["__main__"]
    try:
        yield
    finally:
        sys.path[:], sys.argv[:] = path, arguments
        sys.modules["__main__"] = main

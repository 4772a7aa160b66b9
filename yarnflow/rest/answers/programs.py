"""Uploaded programs in the shapes of Flink's REST interface, where they are called jars."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, field

from yarnflow.rest.answers.shapes import Camel

_Text = Annotated[str, Meta(max_length=4096)]
_Arguments = Annotated[list[_Text], Meta(max_length=1000)]
_Parallelism = Annotated[int, Meta(ge=1, le=32_768)]
#: there is no LEGACY one
_ClaimMode = Literal["CLAIM", "NO_CLAIM"]


class Entry(msgspec.Struct):
    """A module that can be run."""

    name: str
    description: str | None = None


class Program(msgspec.Struct):
    """One uploaded file."""

    id: str
    name: str
    uploaded: int
    entry: list[Entry]


class Programs(msgspec.Struct):
    """``GET /jars``."""

    address: str
    files: list[Program]


class Uploaded(msgspec.Struct):
    """``POST /jars/upload``; the name of the file ends with its id."""

    filename: str
    status: Literal["success"] = "success"


class PlanRequest(Camel):
    """``POST /jars/:jarid/plan``; what it does not say may stand in the query."""

    #: the module to run
    entry_class: _Text | None = None
    #: in one text, as a shell takes it apart; of Flink before 2.0
    program_args: _Text | None = None
    program_args_list: _Arguments | None = None
    parallelism: _Parallelism | None = None
    job_id: str | None = None
    #: options of the job
    flink_configuration: dict[str, str] | None = None


class RunRequest(PlanRequest):
    """``POST /jars/:jarid/run``; what it does not say may stand in the query."""

    savepoint_path: _Text | None = None
    allow_non_restored_state: bool | None = None
    claim_mode: _ClaimMode | None = None
    #: Flink's name of it before 2.0
    restore_mode: _ClaimMode | None = None


class RunAnswer(msgspec.Struct):
    """``POST /jars/:jarid/run``."""

    jobid: str


class ApplicationAnswer(msgspec.Struct):
    """``POST /jars/:jarid/run-application``; each job is an application of its own."""

    application_id: str = field(name="applicationId")


def programs(address: str, found: Iterable[tuple[str, str, int, list[str]]]) -> Programs:
    """``GET /jars``; of each its id, its name, when it came, and its modules."""
    return Programs(
        address,
        [
            Program(program_id, name, uploaded_ms, [Entry(each) for each in modules])
            for program_id, name, uploaded_ms, modules in found
        ],
    )

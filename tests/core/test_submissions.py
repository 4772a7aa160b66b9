"""What a submission is known by."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from yarnflow.core.checkpoint.messages import RestoreSettings
from yarnflow.core.ids import JobId
from yarnflow.core.json_codec import from_json, to_json
from yarnflow.core.messages import JobSubmission, ProgramKind
from yarnflow.core.submissions import submission_digest

SUBMISSION = JobSubmission(
    JobId("a" * 32),
    "job",
    ProgramKind.SCRIPT,
    "{}",
    {"a": "1", "b": "2"},
    files={"job.py": b"print()", "lib.py": b""},
    script_argv=("job.py",),
)
OTHER: dict[str, Any] = {
    "job_id": JobId("b" * 32),
    "name": "other",
    "kind": ProgramKind.GRAPH,
    "job_graph_json": "[]",
    "configuration": {"a": "1"},
    "job_key": "key",
    "files": {"job.py": b"print()"},
    "script_argv": (),
    "restore": RestoreSettings("/savepoint"),
    "program_digest": "d1",
    "earlier_job_key": "job",
}


def test_all_that_a_submission_says_counts() -> None:
    assert set(OTHER) == {field.name for field in fields(JobSubmission)}
    digests = {submission_digest(replace(SUBMISSION, **{name: value})) for name, value in OTHER.items()}
    assert len(digests | {submission_digest(SUBMISSION)}) == len(OTHER) + 1


def test_the_order_of_mappings_and_a_journey_do_not_count() -> None:
    turned = replace(
        SUBMISSION,
        configuration=dict(reversed(SUBMISSION.configuration.items())),
        files=dict(reversed(SUBMISSION.files.items())),
    )
    travelled = from_json(JobSubmission, to_json(SUBMISSION))
    assert submission_digest(turned) == submission_digest(travelled) == submission_digest(SUBMISSION)


@pytest.mark.parametrize(
    "files",
    [
        {"ab": b"c"},
        {"a": b"bc"},
        {"a": b"", "b": b"c"},
        {"a": b"\n1 1 bc"},
    ],
)
def test_no_two_sets_of_files_read_alike(files: dict[str, bytes]) -> None:
    others = [{"abc": b""}, {"a": b"b", "c": b""}, {"a": b"", "bc": b""}, {"a": b"", "b": b"", "c": b""}]
    one = submission_digest(replace(SUBMISSION, files=files))
    assert one not in {submission_digest(replace(SUBMISSION, files=other)) for other in others}

"""What ``yarnflow recover`` makes of jobs that have ended."""

from __future__ import annotations

import pytest

from yarnflow.cli.recover import _Recovery
from yarnflow.config.configuration import Configuration
from yarnflow.core.checkpoint.manifest import FREE, HELD
from yarnflow.core.ids import JobId
from yarnflow.core.json_codec import to_json
from yarnflow.core.messages import JobDetails, JobOverview, JobSubmission, ProgramKind
from yarnflow.core.states import JobStatus
from yarnflow.errors import StorageUnavailable
from yarnflow.ha.stores.stored_jobs import stored_jobs
from yarnflow.testing.file_system import MemoryFileSystem
from yarnflow.testing.gateways.dispatcher import FakeDispatcher

JOB = JobId("a" * 32)
HA = "/ha/default"


class Storage:
    """A cluster's directory with one job, whose result is stored and whose driver's marker is there."""

    def __init__(self) -> None:
        self.fs = MemoryFileSystem()
        submission = JobSubmission(JOB, "flights", ProgramKind.GRAPH, "{}", {}, "daily")
        details = JobDetails(JobOverview(JOB, "flights", JobStatus.FINISHED, 1, 2), 3)
        for kind, content in (("jobgraphs", submission), ("results", details)):
            self.fs.make_directory(f"{HA}/{kind}")
            self.fs.write(f"{HA}/{kind}/{JOB}-1.json", to_json(content).encode())
        self.fs.make_directory(f"/cp/{JOB}")
        self.fs.write(f"/cp/{JOB}/{HELD}", b"RUNNING\nmanifest")

    def recover(self, dry_run: bool = False) -> list[str]:
        """Run it; returns what the job's checkpoint directory and jobgraphs have then."""
        options = Configuration().with_values({"execution.checkpointing.dir": "/cp"}, "test")
        open_file_system = lambda uri: (self.fs, uri)  # noqa: E731
        work = _Recovery(open_file_system, HA, options, dry_run)
        said = work.run(FakeDispatcher(), lambda: None, stored_jobs(open_file_system, HA))
        assert all(each.settled for each in said)
        return [entry.name for where in (f"/cp/{JOB}", f"{HA}/jobgraphs") for entry in self.fs.list(where)]


def test_a_job_whose_master_only_stored_its_result_is_not_taken_for_lost() -> None:
    storage = Storage()
    assert storage.recover(dry_run=True) == [HELD, f"{JOB}-1.json"]
    assert storage.recover() == [FREE]
    assert storage.fs.read(f"/cp/{JOB}/{FREE}").startswith(b"FINISHED\n")


def test_its_file_stays_until_that_is_noted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    storage = Storage()

    def fail(*_arguments: object) -> None:
        raise StorageUnavailable("safe mode")

    monkeypatch.setattr(storage.fs, "rename", fail)
    assert storage.recover() == [HELD, f"{JOB}-1.json"]
    assert "cannot be noted: safe mode" in capsys.readouterr().err

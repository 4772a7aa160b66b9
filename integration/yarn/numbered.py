"""The job over numbered records on YARN: ended by hand, and counted."""

from __future__ import annotations

import json
from collections.abc import Iterator

from integration.commits import Commit, await_more, commits_below
from integration.faults.records import PATIENT, QUERIES, Numbered, read_results
from integration.yarn.jobs import Yarn


def await_commits(yarn: Yarn, job_id: str) -> None:
    """Until both queries of a job have committed two batches more."""
    directory = f"{yarn.home}/.yarnflow/checkpoints/{job_id}"

    def look() -> list[Commit]:
        return commits_below(yarn.hdfs, directory)

    await_more(look, 2, QUERIES)


def drain(yarn: Yarn, job: Numbered, job_id: str, application_id: str) -> str:
    """End a job so that all its windows fire; returns the savepoint's path."""
    stopped = yarn.run(
        *("stop", f"-Dyarn.application.id={application_id}", "--drain", PATIENT),
        *("-p", f"hdfs://{job.output}/savepoints", job_id),
    )
    assert stopped.process.returncode == 0, stopped.stderr
    return stopped.stdout.strip()


def assert_each_record_once(yarn: Yarn, job: Numbered, savepoint: str) -> None:
    """What was read before a drain stands in the results once."""
    inspected = yarn.run("savepoint", "inspect", "--json", savepoint)
    assert inspected.process.returncode == 0, inspected.stderr
    taken = job.taken(json.loads(inspected.stdout))

    def files(sink: str) -> Iterator[bytes]:
        for name in yarn.below(f"{job.output}/{sink}"):
            if name.startswith("part-"):
                with yarn.hdfs.read(f"{job.output}/{sink}/{name}") as reader:
                    yield reader.read()

    verdict = taken.verdict(*read_results(files))
    assert verdict == "", verdict

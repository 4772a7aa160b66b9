"""``yarnflow recover``: jobs that are stored, and that the cluster does not know."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.state_cluster import JOB, Cluster
from yarnflow.cli.main import main
from yarnflow.core.ids import JobId
from yarnflow.core.json_codec import to_json
from yarnflow.core.messages import Fence, JobSubmission, ProgramKind

pytestmark = pytest.mark.usefixtures("interpreter")


def test_recover_submits_what_the_cluster_does_not_know(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graphs = tmp_path / "ha" / "default" / "jobgraphs"
    graphs.mkdir(parents=True)
    lost, damaged, known = JobId("cd" * 16), JobId("ef" * 16), JOB
    for job_id in (lost, known):
        submission = JobSubmission(job_id, "lost", ProgramKind.GRAPH, "{}", {})
        (graphs / f"{job_id}-1.json").write_text(to_json(submission))
    (graphs / f"{damaged}-1.json").write_text("")
    options = ["recover", "-t", "remote", f"-Dhigh-availability.storageDir=file://{tmp_path}/ha"]
    before = list(cluster.submissions)
    assert main([*options, "--dry-run", lost]) == 0
    assert cluster.submissions == before and "would be recovered" in capsys.readouterr().out
    assert main(options) == 89
    assert [submission.job_id for submission in cluster.submissions[len(before):]] == [lost]
    out, err = capsys.readouterr()
    where = f"file://{tmp_path}/ha/default/checkpoints/{lost}"
    assert f"Job {lost} (lost) is recovered without state, as there is none in {where}." in out
    assert f"Job {known} is known to the cluster: RUNNING" in out
    assert damaged in err
    assert main([*options, "0" * 32]) == 41
    assert main(["recover", "-t", "remote"]) == 10


def store(tmp_path: Path, job_id: JobId, **options: str) -> Path:
    """What a job is to run, as a cluster has stored it."""
    graphs = tmp_path / "ha" / "default" / "jobgraphs"
    graphs.mkdir(parents=True, exist_ok=True)
    file = graphs / f"{job_id}-1.json"
    file.write_text(to_json(JobSubmission(job_id, "lost", ProgramKind.GRAPH, "{}", options)))
    return file


def recover(tmp_path: Path, *options: str) -> int:
    return main(["recover", "-t", "remote", f"-Dhigh-availability.storageDir=file://{tmp_path}/ha", *options])


def test_recover_says_when_no_cluster_has_stored_jobs_where_it_looks(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = f"file://{tmp_path}/nowhere"
    assert recover(tmp_path, "--from", where, "--dry-run") == 41
    assert f"no cluster has stored jobs in {where}" in capsys.readouterr().err
    (tmp_path / "ha" / "default" / "jobgraphs").mkdir(parents=True)
    assert recover(tmp_path) == 0
    assert "There are no jobs in" in capsys.readouterr().out


def test_recover_runs_nothing_that_others_could_have_written(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost, before = JobId("cd" * 16), list(cluster.submissions)
    file = store(tmp_path, lost)
    file.chmod(0o666)
    assert recover(tmp_path) == 89
    assert cluster.submissions == before
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line]
    assert f"file://{file} is writable by others" in line and "--trust" in line
    assert recover(tmp_path, "--trust") == 0
    assert [submission.job_id for submission in cluster.submissions[len(before):]] == [lost]


@pytest.mark.parametrize("own_root", [True, False])
@pytest.mark.parametrize("marker", ["owner.free", f"owner.claimed-{'5' * 32}", "owner.held"])
def test_recover_leaves_out_jobs_that_have_ended(
    marker: str, own_root: bool, cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The result of a job is forgotten in the end; a file of it may be left all the same."""
    job, before = JobId("cd" * 16), list(cluster.submissions)
    root = tmp_path / "own" if own_root else tmp_path / "ha" / "default" / "checkpoints"
    options = {"execution.checkpointing.dir": f"file://{root}/"} if own_root else {}
    file = store(tmp_path, job, **options)
    (root / job).mkdir(parents=True)
    (root / job / marker).touch()
    for dry_run in (["--dry-run"], []):
        assert recover(tmp_path, *dry_run) == 0
        has_ended = f"Job {job} has ended; it is not run again" in capsys.readouterr().out
        assert has_ended is (marker != "owner.held")
        assert file.exists() is (bool(dry_run) or not has_ended)
    assert (cluster.submissions == before) is has_ended


def test_recover_deletes_files_of_jobs_whose_end_is_stored(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    over = JobId("cd" * 16)
    files = [store(tmp_path, over), store(tmp_path, JOB)]
    for job_id in (over, JOB):
        (tmp_path / "ha" / "default" / "results").mkdir(exist_ok=True)
        (tmp_path / "ha" / "default" / "results" / f"{job_id}-1.json").write_text("{}")
    assert recover(tmp_path) == 0
    assert "its file is deleted" in capsys.readouterr().out
    assert [file.exists() for file in files] == [False, True], "the cluster knows the other one"


@pytest.mark.parametrize("named", [True, False])
def test_recover_tells_the_cluster_where_the_state_is(
    named: bool, cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The cluster may have another directory now, and would begin anew there."""
    job, before = JobId("cd" * 16), len(cluster.submissions)
    file = store(tmp_path, job)
    state = tmp_path / "ha" / "default" / "checkpoints"
    (state / job).mkdir(parents=True)
    if named:
        others = ["-Dhigh-availability.storageDir=hdfs://elsewhere/ha", "--from", str(file.parents[1])]
        assert main(["recover", "-t", "remote", *others]) == 0
    else:
        assert recover(tmp_path) == 0
    assert f"Job {job} (lost) is recovered." in capsys.readouterr().out
    (submission,) = cluster.submissions[before:]
    assert submission.configuration == {"execution.checkpointing.dir": f"file://{state}"}


@pytest.mark.parametrize(("epoch", "status"), [(1, 10), (2_000_001, 0), (2_000_002, 0)])
def test_recover_is_for_a_cluster_whose_epochs_go_on(
    epoch: int, status: int, cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One with another storage directory begins at 1, and sinks refuse its drivers, again and again."""
    file, before = store(tmp_path, JobId("cd" * 16)), len(cluster.submissions)
    epochs = file.parents[1] / "epochs"
    epochs.mkdir()
    (epochs / f"{2_000_001:019d}").touch()
    cluster.followed = Fence("leader", epoch)
    assert recover(tmp_path, "--from", f"file://{file.parents[1]}") == status
    assert len(cluster.submissions) == before + (status == 0)
    if status:
        (line,) = [line for line in capsys.readouterr().err.splitlines() if line]
        assert f"epoch 2000001, and this cluster's is of epoch {epoch}" in line and "copy of all" in line

"""A standalone cluster by its scripts, used by several commands as an operator would."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from integration.conftest import ROOT, Commands, Started, commands_in, wait_until
from integration.processes import EXECUTOR, TASK_MANAGER, kill_one, none_is_left, processes
from integration.servers import free_port
from tests.patience import PATIENCE
from yarnflow import errors

ENDLESS = """
from yarnflow.api import *
env = StreamExecutionEnvironment.get_execution_environment()
rows = env.from_source(RateSource(rows_per_second=20))
rows.key_by("value % 3 AS part").count().sink_to(FileSink.for_path({output!r}).format("parquet").build())
env.execute({name!r})
"""


#: ended processes of each kind whose logs stay
RETAINED = 1


@dataclass
class Cluster:
    """A started cluster and the options every command needs to reach it."""

    commands: Commands
    options: list[str]
    #: where its processes have their files
    directory: Path

    def logs(self, kind: str) -> set[str]:
        """Drivers (``.out``) or executors whose logs are there."""
        return {path.name for path in (self.directory / "logs").glob(kind)}

    def run(self, verb: str, *arguments: str | Path) -> Started:
        """Run a verb against the cluster to its end."""
        return self.commands.run(verb, *self.options, *arguments)

    def submit_endless(self, directory: Path, name: str, *options: str) -> tuple[str, Path]:
        """Submit a job that never ends; returns its id and output directory."""
        output = directory / f"{name}-out"
        program = directory / f"{name}.py"
        program.write_text(ENDLESS.format(output=str(output), name=name))
        done = self.run("submit", "-d", *options, program)
        assert done.process.returncode == 0, done.stderr
        found = re.search(r"[0-9a-f]{32}", done.stdout + done.stderr)
        assert found
        return found[0], output


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """JobManager and two TaskManagers of one slot; a test leaves no job on it."""
    directory = tmp_path_factory.mktemp("standalone")
    settings = [f"-Djobmanager.rpc.port={free_port()}", f"-Dio.tmp.dirs={directory}"]
    own = [*settings, f"-Dyarnflow.log.retained-processes={RETAINED}"]
    environment = {"YARNFLOW_PID_DIR": str(directory / "pids")}
    with commands_in(directory) as commands:
        start = commands.start_command([ROOT / "scripts" / "start-cluster.sh", "2", *own], environment)
        assert start.wait() == 0, start.stdout + start.stderr
        (runtime,) = directory.glob("yarnflow-*/standalone-*")
        yield Cluster(commands, ["--target", "remote", *settings], runtime)
        stop = commands.start_command([ROOT / "scripts" / "stop-cluster.sh"], environment)
        assert stop.wait() == 0, stop.stdout + stop.stderr
        assert not processes(commands.mark, "yarnflow.entrypoint"), "stop-cluster.sh left processes"


def _running(cluster: Cluster, job_id: str) -> bool:
    return re.search(rf"{job_id}.*RUNNING|RUNNING.*{job_id}", cluster.run("list").stdout) is not None


def _has_results(output: Path, files: int = 1) -> bool:
    return len(list(output.glob("part-*.parquet"))) >= files


@pytest.mark.gate
def test_submit_list_info_cancel(cluster: Cluster, tmp_path: Path) -> None:
    job_id, output = cluster.submit_endless(tmp_path, "one", "-p", "2", "--job-key", "daily")
    wait_until(lambda: _has_results(output), "its first result")
    wait_until(lambda: _running(cluster, job_id), "the job to run")

    again = cluster.run("submit", "-d", "--job-key", "daily", tmp_path / "one.py")
    assert again.process.returncode == 0
    assert job_id in again.stdout + again.stderr, "a second submit of a live key did not name the live job"

    info = cluster.run("info", job_id)
    assert info.process.returncode == 0
    assert "RUNNING" in info.stdout and "one" in info.stdout

    assert cluster.run("cancel", job_id).process.returncode == 0
    assert "CANCELED" in cluster.run("list", "--all").stdout
    left = partial(none_is_left, cluster.commands.mark, EXECUTOR)
    wait_until(left, "the executors of a canceled job to end", PATIENCE.process_s)
    assert cluster.run("cancel", job_id).process.returncode == errors.JobError.exit_code
    assert cluster.run("info", "f" * 32).process.returncode == errors.JobNotFound.exit_code


@pytest.mark.drill
def test_two_jobs_share_the_cluster_and_a_lost_task_manager_hurts_neither(
    cluster: Cluster, tmp_path: Path
) -> None:
    jobs = [cluster.submit_endless(tmp_path, name) for name in ("one", "two")]
    for job_id, output in jobs:
        wait_until(partial(_has_results, output), "its first result")
        wait_until(partial(_running, cluster, job_id), f"job {job_id} to run")
    kill_one(cluster.commands.mark, TASK_MANAGER)
    for job_id, output in jobs:
        before = len(list(output.glob("part-*.parquet")))
        wait_until(partial(_has_results, output, before + 2), "more")
        assert _running(cluster, job_id)
        assert cluster.run("cancel", job_id).process.returncode == 0


@pytest.mark.drill
def test_files_of_ended_jobs_do_not_add_up(cluster: Cluster, tmp_path: Path) -> None:
    for name in ("one", "two"):
        job_id, output = cluster.submit_endless(tmp_path, name, "-p", "2")
        wait_until(partial(_has_results, output), "its first result", PATIENCE.job_s)
        # on a busy machine some executors may have been given up and replaced; two live
        wait_until(lambda: len(cluster.logs("*-executor-*.log")) <= RETAINED + 2, "old logs to go")
        assert cluster.run("cancel", job_id).process.returncode == 0
        wait_until(lambda: len(cluster.logs("*-executor-*.log")) == RETAINED, "old logs to go")
        assert all(job_id[:8] in log for log in cluster.logs("*-executor-*.log")), "the newest are kept"
        wait_until(lambda: len(cluster.logs("driver-*.out")) == RETAINED, "old logs to go")
    (head,) = cluster.logs("driver-*.out")
    assert cluster.logs("driver-*") >= {head, head.replace(".out", ".log"), head.replace(".out", ".jvm.log")}
    assert not list((cluster.directory / "jobs").iterdir()), "directories of jobs are left"


@pytest.mark.gate
def test_a_client_without_the_secret_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    other = tmp_path / "other-secret"
    other.write_text("0" * 64 + "\n")
    other.chmod(0o600)
    done = cluster.run("list", f"-Dsecurity.cluster-secret-file={other}")
    assert done.process.returncode == errors.AuthenticationFailed.exit_code, done.stderr

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from tests.client.diagnose.tool_fakes import (
    APPLICATION,
    DEPLOYMENT,
    JOB,
    MASTER,
    FakeCollected,
    FakeLiveLogs,
    FakeServices,
    File,
    application,
    ended,
    no_answer,
    yarn_with,
)
from yarnflow.client.diagnose import support_bundle
from yarnflow.client.diagnose.logs import ApplicationLogs
from yarnflow.client.diagnose.support_bundle import write_bundle
from yarnflow.client.yarn import operations
from yarnflow.client.yarn.operations import drain, format_application, list_applications
from yarnflow.config.configuration import Configuration
from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobDetails, JobOverview
from yarnflow.core.states import JobStatus
from yarnflow.core.yarn import Application, DeploymentMode, FinalStatus
from yarnflow.errors import (
    ApplicationFailed,
    ApplicationNotFound,
    ConfigError,
    RpcTimeout,
    RpcUnavailable,
    YarnUnavailable,
)
from yarnflow.staging.deployment import ApplicationDirectory, Deployment
from yarnflow.staging.layout import skein_directory
from yarnflow.testing.gateways.dispatcher import details

SECRET = "5ec2e7" * 10 + "abcd"
OTHER = "cd" * 16


class Cluster:
    """The JobManager of the test: jobs end when they are canceled, unless they hang."""

    def __init__(self, services: FakeServices) -> None:
        self.application_id = APPLICATION
        self.services = services
        self.jobs: dict[str, JobStatus] = {JOB: JobStatus.RUNNING, OTHER: JobStatus.FINISHED}
        self.canceled: list[str] = []
        self.shut_down = False
        self.hang = False
        self.unreachable = False
        self.closed = 0
        #: what the application's end leaves on HDFS
        self.leaves = False

    def gateway(self) -> Cluster:
        if self.unreachable:
            raise RpcUnavailable("nobody answers")
        return self

    def application(self) -> Application:
        return self.services.cluster.application(APPLICATION)

    def final_details(self, job_id: JobId) -> JobDetails | None:
        return None

    def close(self) -> None:
        self.closed += 1

    def list_jobs(self) -> list[JobOverview]:
        return [self.job_details(JobId(job)).overview for job in self.jobs]

    def job_details(self, job_id: JobId) -> JobDetails:
        return details(job_id, len(self.canceled), self.jobs[job_id])

    def await_job_change(self, job_id: JobId, seen_version: int, timeout_ms: int) -> JobDetails:
        if not self.hang:
            self.jobs[job_id] = JobStatus.CANCELED
            if not any(status is JobStatus.RUNNING for status in self.jobs.values()):
                self.end()
        return self.job_details(job_id)

    def cancel_job(self, job_id: JobId) -> None:
        assert not self.canceled or self.jobs[self.canceled[-1]].terminal, "one after another"
        self.canceled.append(job_id)

    def shut_down_cluster(self) -> None:
        self.shut_down = True
        self.end(session=True)

    def end(self, session: bool = False) -> None:
        cluster = self.services.cluster
        found = cluster.known[APPLICATION]
        if session == ("yarnflow-yarn-session" in found.tags):
            cluster.known[APPLICATION] = ended(found, FinalStatus.KILLED)
            if not self.leaves:
                self.services.fs.delete(self.services.layout.application(DEPLOYMENT))


@pytest.fixture
def services() -> FakeServices:
    found = FakeServices(yarn_with(application()))
    directory = ApplicationDirectory(found.fs, found.layout, DEPLOYMENT)
    found.fs.make_directory(found.layout.applications)
    directory.create()
    directory.write_secret(SECRET)
    directory.write_deployment(
        Deployment(
            DEPLOYMENT,
            DeploymentMode.PER_JOB,
            "hdfs://memory:8020/user/ann/.yarnflow",
            directory.path,
            "ann",
            configuration={"parallelism.default": "2", "spark.hadoop.fs.s3a.secret.key": "hidden-value"},
        )
    )
    return found


@pytest.fixture
def cluster(services: FakeServices, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    found = Cluster(services)
    for module in (operations, support_bundle):
        monkeypatch.setattr(module, "connect_application", lambda services, application: found)
    return found


def run_drain(services: FakeServices, timeout_ms: int = 20_000, *, force: bool = False) -> list[str]:
    times = iter(range(10_000))
    return list(
        drain(
            cast(Any, services),
            APPLICATION,
            timeout_ms=timeout_ms,
            force=force,
            sleep=lambda seconds: None,
            now=lambda: float(next(times)),
        )
    )


# --- listing ----------------------------------------------------------------------


def test_listing(services: FakeServices, cluster: Cluster) -> None:
    earlier = application("application_1_1", started_ms=5, deployment_id="f" * 16)
    services.cluster.known["application_1_1"] = ended(earlier)
    (listed,) = list_applications(cast(Any, services), user="ann")
    lines = format_application(listed).splitlines()
    assert lines[0].endswith(
        f" : {APPLICATION} : flights (yarn-per-job, RUNNING, ann, root.default, 2 containers)"
    )
    assert lines[1:] == [
        f"    {JOB} : flights (RUNNING, 1/1 slots)",
        f"    {OTHER} : flights (FINISHED)",
    ]
    assert cluster.closed == 1
    everything = list_applications(cast(Any, services), ended=True)
    assert [item.application.application_id for item in everything] == ["application_1_1", APPLICATION]
    assert "(yarn-per-job, SUCCEEDED, ann, root.default)" in format_application(everything[0])
    assert list_applications(cast(Any, services), user="bob") == []


def test_listing_without_an_answer_of_the_job_manager(services: FakeServices, cluster: Cluster) -> None:
    cluster.unreachable = True
    (listed,) = list_applications(cast(Any, services))
    assert format_application(listed).splitlines()[1] == "    jobs not known: nobody answers"


# --- draining ---------------------------------------------------------------------


def test_drain_of_a_job(services: FakeServices, cluster: Cluster) -> None:
    assert run_drain(services) == [
        f"job flights ({JOB}): CANCELED",
        f"application {APPLICATION} ended KILLED",
        "nothing is left of it on YARN and HDFS",
    ]
    assert cluster.canceled == [JOB] and not cluster.shut_down and cluster.closed == 1


def test_drain_of_a_session(services: FakeServices, cluster: Cluster) -> None:
    services.cluster.known[APPLICATION] = application(mode="yarn-session")
    cluster.jobs = {JOB: JobStatus.RUNNING, OTHER: JobStatus.RUNNING}
    said = run_drain(services)
    assert cluster.canceled == [JOB, OTHER] and cluster.shut_down
    assert said[2] == "session told to end" and said[-1].startswith("nothing is left")


def test_drain_of_a_job_that_hangs(services: FakeServices, cluster: Cluster) -> None:
    cluster.hang = True
    with pytest.raises(RpcTimeout, match=f"still RUNNING 20 s after .*yarnflow logs {APPLICATION}"):
        run_drain(services)
    assert not cluster.shut_down


def test_all_masters_of_a_cluster_are_one_application(services: FakeServices, cluster: Cluster) -> None:
    services.cluster.known["application_1_9"] = application("application_1_9", started_ms=2_000)
    (listed,) = list_applications(cast(Any, services), user="ann")
    assert listed.application.application_id == APPLICATION
    assert "    master application_1_9 (RUNNING)" in format_application(listed).splitlines()


def test_drain_waits_for_every_master(services: FakeServices, cluster: Cluster) -> None:
    services.cluster.known["application_1_9"] = application("application_1_9")
    with pytest.raises(ApplicationFailed, match="application_1_9 is still RUNNING"):
        run_drain(services)


def test_drain_by_force_kills_every_master(services: FakeServices, cluster: Cluster) -> None:
    services.cluster.known["application_1_9"] = application("application_1_9")
    cluster.leaves = True
    said = run_drain(services, force=True)
    assert set(services.cluster.killed) == {APPLICATION, "application_1_9"}
    assert cluster.canceled == [] and said[-1] == "nothing is left of it on YARN and HDFS"


def test_drain_of_an_application_that_stays(services: FakeServices, cluster: Cluster) -> None:
    cluster.end = lambda session=False: None  # type: ignore[method-assign]
    with pytest.raises(ApplicationFailed, match=f"still RUNNING 20 s .*yarn-drain --force {APPLICATION}"):
        run_drain(services)


def test_drain_tells_what_was_left_behind(services: FakeServices, cluster: Cluster) -> None:
    services.fs.make_directory(skein_directory(services.fs.home(), APPLICATION))
    with pytest.raises(ApplicationFailed, match=f"has left /user/ann/.skein/{APPLICATION} on HDFS"):
        run_drain(services)
    assert not services.cluster.killed


def test_drain_looks_at_the_staging_directory(services: FakeServices, cluster: Cluster) -> None:
    cluster.leaves = True
    with pytest.raises(ApplicationFailed, match=f"has left .*{DEPLOYMENT} on HDFS.* hdfs dfs -rm -r"):
        run_drain(services)


def test_drain_of_what_cannot_be_drained(services: FakeServices, cluster: Cluster) -> None:
    services.cluster.known[APPLICATION] = ended(application())
    with pytest.raises(ApplicationNotFound, match=r"has ended already \(SUCCEEDED\)"):
        run_drain(services)
    services.cluster.known.clear()
    with pytest.raises(ApplicationNotFound):
        run_drain(services)
    services.cluster.known[APPLICATION] = application()
    cluster.unreachable = True
    with pytest.raises(RpcUnavailable):
        run_drain(services)


# --- support bundle -----------------------------------------------------------------


@pytest.fixture
def collected() -> FakeCollected:
    return FakeCollected({(MASTER, "m.log"): "begun\nat the end\n"})


@pytest.fixture
def bundle(
    services: FakeServices,
    cluster: Cluster,
    collected: FakeCollected,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[], dict[str, str]]:
    """Writes a bundle; returns its files."""
    lines = f"connecting\nsecret is {SECRET}\npassword=topsecret x\n".encode()
    live = FakeLiveLogs({MASTER: [File("m.log", lines), File("launch_container.sh", b"export A=b\n")]})

    logs = partial(ApplicationLogs, live=live, collected=collected, now=lambda: 1e6)
    monkeypatch.setattr(support_bundle, "ApplicationLogs", logs)
    monkeypatch.setattr(support_bundle, "checks_for", lambda *arguments, **more: ([], lambda: None))

    def write() -> dict[str, str]:
        path = tmp_path / "bundle.tar.gz"
        written = write_bundle(cast(Any, services), services.cluster.known[APPLICATION], path, {})
        assert path.stat().st_mode & 0o777 == 0o600
        with tarfile.open(path) as tar:
            files = {
                name.removeprefix("bundle/"): cast(io.BufferedReader, tar.extractfile(name)).read().decode()
                for name in tar.getnames()
            }
        files["missing"] = json.dumps(written.missing)
        return files

    return write


def test_bundle_of_a_running_application(
    services: FakeServices, bundle: Callable[[], dict[str, str]]
) -> None:
    services.configuration = Configuration.from_dict({"spark.my.password": "hunter2"}, "-D")
    files = bundle()
    assert json.loads(files["application.json"])["application_id"] == APPLICATION
    assert [item["container_id"] for item in json.loads(files["containers.json"])][-1] == MASTER
    assert [job["overview"]["status"] for job in json.loads(files["jobs.json"])] == ["RUNNING", "FINISHED"]
    configuration = json.loads(files["configuration.json"])
    assert configuration["application"]["parallelism.default"] == "2"
    assert configuration["deployment"]["deployment_id"] == DEPLOYMENT
    assert json.loads(files["queue.json"])[0]["path"] == "root.default"
    assert files[f"logs/{MASTER}/m.log"] == "connecting\nsecret is ******\npassword=******\n"
    assert "yarnflow " in files["versions.txt"] and APPLICATION in files["README"]
    assert files["missing"] == "{}"
    everything = "\n".join(files.values())
    for secret in (SECRET, "topsecret", "hidden-value", "hunter2", "export A=b"):
        assert secret not in everything


def test_bundle_of_an_ended_application(
    services: FakeServices, bundle: Callable[[], dict[str, str]]
) -> None:
    services.cluster.known[APPLICATION] = ended(application())
    services.fs.delete(services.layout.application(DEPLOYMENT))
    files = bundle()
    assert "jobs.json" not in files
    assert "went with it" in json.loads(files["missing"])["jobs.json"]
    assert "not known any more" in json.loads(files["configuration.json"])["application"]
    assert files[f"logs/{MASTER}/m.log"] == "begun\nat the end\n"


def test_bundle_has_the_logs_of_all_masters(
    services: FakeServices, bundle: Callable[[], dict[str, str]], collected: FakeCollected
) -> None:
    first = f"{APPLICATION[:-4]}0003"
    services.cluster.known[first] = ended(application(first))
    bundle()
    assert collected.asked == [(first, "ann")]


def test_bundle_of_logs_that_break_off(
    services: FakeServices, bundle: Callable[[], dict[str, str]], collected: FakeCollected
) -> None:
    services.cluster.known[APPLICATION] = ended(application())
    collected.failure = YarnUnavailable("status 1")
    files = bundle()
    assert files[f"logs/{MASTER}/m.log"] == "begun\nat the end\n"
    assert json.loads(files["missing"])["logs"] == "status 1"


def test_bundle_without_what_cannot_be_had(
    services: FakeServices, cluster: Cluster, bundle: Callable[[], dict[str, str]]
) -> None:
    services.cluster.error = no_answer()
    cluster.unreachable = True
    files = bundle()
    assert set(json.loads(files["missing"])) == {"containers.json", "queue.json", "jobs.json", "logs"}
    assert "jobs.json: nobody answers" in files["missing.txt"]
    assert json.loads(files["application.json"])["name"] == "flights"


def test_bundle_that_cannot_be_written(services: FakeServices, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot write .*none/b.tar.gz: No such file"):
        write_bundle(cast(Any, services), application(), tmp_path / "none" / "b.tar.gz", {})


def test_a_bundle_that_replaces_a_readable_file_is_private(
    tmp_path: Path, bundle: Callable[[], dict[str, str]]
) -> None:
    path = tmp_path / "bundle.tar.gz"
    path.touch()
    path.chmod(0o644)
    bundle()


def test_secrets_in_documents_do_not_survive_the_notation(
    services: FakeServices, bundle: Callable[[], dict[str, str]]
) -> None:
    diagnostics = 'said "password": "a \\"b\\" c", then\nspark.my.token=d e, f; g\nand ended'
    services.cluster.known[APPLICATION] = application(diagnostics=diagnostics)
    text = json.loads(bundle()["application.json"])["diagnostics"]
    assert text == 'said "password": "******", then\nspark.my.token=******\nand ended'

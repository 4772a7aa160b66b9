from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from tests.client.diagnose.tool_fakes import (
    APPLICATION,
    DEPLOYMENT,
    JOB,
    MASTER,
    WORKER,
    FakeCollected,
    FakeLiveLogs,
    FakeServices,
    File,
    application,
    ended,
    yarn_with,
)
from yarnflow.client.diagnose.logs import (
    ApplicationLogs,
    check_selection,
    find_logged_application,
    known_application,
    selected,
)
from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobSubmission, ProgramKind
from yarnflow.errors import ApplicationNotFound, InvalidOption, JobNotFound, YarnError, YarnUnavailable
from yarnflow.staging.deployment import ApplicationDirectory, Connection
from yarnflow.staging.layout import prepare
from yarnflow.testing.gateways.dispatcher import FakeDispatcher

LAUNCH = "launch_container.sh"


class Reader:
    """The logs of one application, with everything the test wants to see."""

    def __init__(self, live: FakeLiveLogs | None = None, **arguments: Any) -> None:
        self.cluster = yarn_with(arguments.pop("application", application()))
        self.services = FakeServices(self.cluster)
        self.collected = FakeCollected(arguments.pop("collected", {}))
        self.notes: list[str] = []
        self.live = live or FakeLiveLogs({MASTER: [File("m.log", b"one\ntwo\nthree\n")]})
        self.during_sleep: list[Callable[[], None]] = []
        self.time_s = arguments.pop("time_s", 1000.0)
        self.logs = ApplicationLogs(
            cast(Any, self.services),
            next(iter(self.cluster.known.values())),
            note=self.notes.append,
            live=self.live,
            collected=self.collected,
            sleep=self.sleep,
            now=lambda: self.time_s,
            **arguments,
        )

    def sleep(self, seconds: float) -> None:
        self.time_s += seconds
        if self.during_sleep:
            self.during_sleep.pop(0)()

    def read(self) -> list[tuple[str, str, str]]:
        return [(part.container_id, part.file, part.text) for part in self.logs.read()]

    def follow(self) -> list[tuple[str, str, str]]:
        return [(part.container_id, part.file, part.text) for part in self.logs.follow()]


def live_files() -> FakeLiveLogs:
    return FakeLiveLogs(
        {
            MASTER: [
                File(LAUNCH, b"export SECRET=1\n"),
                File("m.log", b"one\ntwo\nthree\n"),
                File("e.log", b""),
            ],
            WORKER: [File("w.log", b"working\n")],
        }
    )


# --- which ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("selection", "master", "worker"),
    [
        ("", True, True),
        ("master", True, False),
        ("taskmanager", False, True),
        ("2", False, True),
        ("000001", True, False),
        (WORKER, False, True),
    ],
)
def test_selection(selection: str, master: bool, worker: bool) -> None:
    check_selection(selection)
    assert selected(selection, MASTER, {"a.log", "application.master.log"}) is master
    assert selected(selection, WORKER, {"taskmanager.log"}) is worker


def test_master_is_known_by_its_files_not_by_its_number() -> None:
    assert selected("master", WORKER, {"application.driver.log"})
    assert not selected("taskmanager", WORKER, {"application.driver.log"})
    live = FakeLiveLogs({WORKER: [File("application.driver.log", b"m\n")], MASTER: [File("w.log", b"w\n")]})
    assert Reader(live, selection="master").read() == [(WORKER, "application.driver.log", "m\n")]
    assert Reader(live, selection="taskmanager").read() == [(MASTER, "w.log", "w\n")]


def test_what_names_no_container() -> None:
    with pytest.raises(InvalidOption, match="expected master, taskmanager"):
        check_selection("mastr")


def test_jobs_and_applications_are_found() -> None:
    older = application("application_1_1", started_ms=5)
    newer = ended(application("application_1_2", started_ms=9))
    services = cast(Any, FakeServices(yarn_with(older, newer)))
    assert find_logged_application(services, "application_1_1") is older
    assert find_logged_application(services, JOB) is older, "of a job's masters one that lives"
    services.cluster.known["application_1_1"] = ended(older)
    assert find_logged_application(services, JOB) is newer, "the newest of a job's applications"
    with pytest.raises(JobNotFound, match="no application of user ann on YARN has job"):
        find_logged_application(services, "cd" * 16)
    with pytest.raises(InvalidOption, match="neither"):
        find_logged_application(services, "flights")
    with pytest.raises(ApplicationNotFound):
        find_logged_application(services, "application_1_9")


def test_a_job_of_a_session() -> None:
    session = application("application_1_3", mode="yarn-session")
    services = FakeServices(yarn_with(session))
    prepare(services.fs, services.layout, services.user)
    directory = ApplicationDirectory(services.fs, services.layout, DEPLOYMENT)
    directory.create()
    directory.write_secret("ab" * 32)
    directory.publish_connection(Connection("application_1_3", "jm:1", "", "l", 1, 1))
    job = JobSubmission(JobId("cd" * 16), "flights", ProgramKind.GRAPH, "{}", {})
    dispatcher = services.gateways.dispatchers["jm:1"] = FakeDispatcher()
    with pytest.raises(JobNotFound):
        find_logged_application(cast(Any, services), job.job_id)
    dispatcher.submissions.append(job)
    assert find_logged_application(cast(Any, services), job.job_id) is session
    assert services.gateways.closes == 2


# --- live -----------------------------------------------------------------------


def test_live_files_of_all_containers_master_first() -> None:
    reader = Reader(live_files())
    assert reader.read() == [(MASTER, "m.log", "one\ntwo\nthree\n"), (WORKER, "w.log", "working\n")]


def test_last_lines_are_read_from_the_end() -> None:
    content = b"".join(b"line %06d\n" % number for number in range(10_000))
    live = FakeLiveLogs({MASTER: [File("m.log", content)]})
    reader = Reader(live, lines=2)
    assert reader.read() == [(MASTER, "m.log", "line 009998\nline 009999\n")]
    assert len(content) - live.reads[-1][1] < 2_000
    long = FakeLiveLogs({MASTER: [File("m.log", b"x" * 5_000 + b"\ny\n" + b"z" * 3_000 + b"\n")]})
    assert Reader(long, lines=2).read()[0][2] == "y\n" + "z" * 3_000 + "\n"
    assert Reader(live_files(), lines=0).read() == []


def test_a_node_that_does_not_answer_hides_no_other() -> None:
    live = live_files()
    live.unreachable = {"node1:8042"}
    reader = Reader(live)
    assert [part[0] for part in reader.read()] == [WORKER]
    assert reader.notes == [f"no logs of {MASTER}: NodeManager node1:8042 does not answer"]


def test_no_container_yet_and_no_such_container() -> None:
    reader = Reader()
    reader.cluster.containers_of = []
    with pytest.raises(YarnError, match="has no container with logs yet"):
        reader.read()
    for selection in ("", "master", "taskmanager", "2"):
        starting = Reader(FakeLiveLogs({MASTER: [], WORKER: []}), selection=selection)
        with pytest.raises(YarnError, match=f"has no {f'container {selection}'.strip()} with logs yet"):
            starting.read()
    assert [part[0] for part in Reader(FakeLiveLogs({MASTER: [File("m.log", b"x\n")]})).read()] == [MASTER]
    with pytest.raises(YarnError, match=f"has no container 7 now; it has: {MASTER}, {WORKER}"):
        Reader(selection="7").read()


def test_follow_shows_each_line_once_and_the_rest_after_the_end() -> None:
    file = File("m.log", b"one\ntw")
    reader = Reader(
        FakeLiveLogs({MASTER: [file]}),
        collected={
            (MASTER, "m.log"): "one\ntwo\nthree\nlast\n",
            (WORKER, "w.log"): "late\n",
            (WORKER, LAUNCH): "x\n",
        },
        time_s=10.0,
    )
    running = application()

    def grow() -> None:
        file.content += b"o\nthree\n"

    reader.during_sleep = [grow]
    reader.cluster.upcoming = [running, running, ended(running)]
    reader.services.fs.make_directory("/tmp/logs/ann/bucket-logs-tfile/0007/" + APPLICATION)
    reader.services.fs.write(f"/tmp/logs/ann/bucket-logs-tfile/0007/{APPLICATION}/node1_1", b"")
    assert reader.follow() == [
        (MASTER, "m.log", "one\n"),
        (MASTER, "m.log", "two\nthree\n"),
        (MASTER, "m.log", "last\n"),
        (WORKER, "w.log", "late\n"),
    ]
    assert reader.notes == [f"application {APPLICATION} has ended: SUCCEEDED"]


def test_follow_without_aggregation_says_that_lines_may_be_missing() -> None:
    reader = Reader(FakeLiveLogs({MASTER: [File("m.log", b"one\n")]}), time_s=10.0)
    reader.services.properties = {}
    reader.cluster.upcoming = [ended(application())]
    assert reader.follow() == [(MASTER, "m.log", "one\n")]
    assert reader.notes[-1].startswith("the last lines may be missing: ")
    assert "log aggregation is off" in reader.notes[-1]


# --- ended ----------------------------------------------------------------------


def test_logs_on_hdfs_that_break_off_are_shown_before_it_is_said() -> None:
    texts = {(MASTER, "a.log"): "one\ntwo\nthree\n"}
    reader = Reader(application=ended(application()), collected=texts, lines=2)
    reader.collected.failure = YarnUnavailable("not complete")
    parts = reader.logs.read()
    assert [next(parts).text for _ in range(2)] == ["two\n", "three\n"]
    with pytest.raises(YarnUnavailable, match="not complete"):
        next(parts)


def test_ended_application_is_read_from_hdfs() -> None:
    texts = {(MASTER, LAUNCH): "secret\n", (MASTER, "m.log"): "one\ntwo\nthree\n", (WORKER, "w.log"): "w\n"}
    reader = Reader(application=ended(application()), collected=texts, lines=2)
    assert reader.read() == [
        (MASTER, "m.log", "two\n"),
        (MASTER, "m.log", "three\n"),
        (WORKER, "w.log", "w\n"),
    ]
    assert reader.collected.asked == [(APPLICATION, "ann")] and reader.live.reads == []
    texts = {(MASTER, "application.driver.log"): "d\n", **texts}
    only = Reader(application=ended(application()), collected=texts, selection="taskmanager")
    assert [part[0] for part in only.read()] == [WORKER]
    master = Reader(application=ended(application()), collected=texts, selection="master")
    assert [part[1] for part in master.read()] == ["application.driver.log", *["m.log"] * 3]
    with pytest.raises(YarnError, match=f"has no logs of 9 on HDFS; it has: {MASTER}, {WORKER}"):
        Reader(application=ended(application()), collected=texts, selection="9").read()


def test_waits_while_nodes_are_writing() -> None:
    reader = Reader(application=ended(application()), collected={(MASTER, "m.log"): "x\n"}, time_s=11.0)
    directory = f"/tmp/logs/ann/bucket-logs-tfile/0007/{APPLICATION}"
    fs = reader.services.fs
    reader.during_sleep = [
        lambda: fs.make_directory(directory),
        lambda: fs.write(f"{directory}/node1_1.tmp", b""),
        lambda: None,
        lambda: cast(None, fs.rename(f"{directory}/node1_1.tmp", f"{directory}/node1_1")),
    ]
    assert reader.read() == [(MASTER, "m.log", "x\n")]
    assert reader.during_sleep == []
    assert reader.notes == ["waiting for YARN to collect the logs on HDFS"]


def test_waits_only_so_long_and_says_where_it_looked() -> None:
    reader = Reader(application=ended(application()), time_s=11.0)
    with pytest.raises(YarnError, match=r"not on HDFS \(looked in /tmp/logs/ann/bucket-logs-tfile/0007/appl"):
        reader.read()
    assert 40 <= reader.time_s < 45
    late = Reader(application=ended(application()), time_s=10_000.0)
    with pytest.raises(YarnError, match="not on HDFS"):
        late.read()
    assert late.time_s == 10_000.0, "an old application is not waited for"


def test_aggregation_that_is_off_is_said() -> None:
    reader = Reader(application=ended(application()), time_s=10_000.0)
    reader.services.properties = {"yarn.log-aggregation-enable": "false"}
    with pytest.raises(YarnError, match="log aggregation is off .*/etc/hadoop/yarn-site.xml.*turn log"):
        reader.read()


def test_an_application_yarn_has_forgotten() -> None:
    services = cast(Any, FakeServices(yarn_with()))
    found = known_application(services, APPLICATION)
    reader = Reader(application=found, collected={(MASTER, "m.log"): "x\n"})
    assert reader.read() == [(MASTER, "m.log", "x\n")]
    with pytest.raises(ApplicationNotFound, match="YARN does not know .* and HDFS has no logs of it"):
        Reader(application=found).read()
    with pytest.raises(JobNotFound):
        known_application(services, JOB)

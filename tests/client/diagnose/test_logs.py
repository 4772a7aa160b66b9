from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
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
from yarnflow.errors import (
    ApplicationNotFound,
    InvalidOption,
    JobNotFound,
    YarnError,
    YarnflowError,
    YarnUnavailable,
)
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


def test_a_driver_with_a_container_of_its_own() -> None:
    files = {"driver-1.log", "driver.log"}
    assert selected("driver", WORKER, files) and not selected("taskmanager", WORKER, files)
    in_master = {"application.driver.log", "driver-1.log"}
    assert not selected("driver", MASTER, in_master) and selected("master", MASTER, in_master)
    texts = {(WORKER, LAUNCH): "secret\n", (WORKER, "driver-1.log"): "d\n"}
    reader = Reader(application=ended(application()), collected=texts, selection="driver")
    assert reader.read() == [(WORKER, "driver-1.log", "d\n")]


def test_what_names_no_container() -> None:
    with pytest.raises(InvalidOption, match="expected master, driver, taskmanager"):
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


@pytest.mark.parametrize("lines", [None, 1])
def test_a_file_that_is_removed_meanwhile_hides_no_other(lines: int | None) -> None:
    files = [File("driver-1.out", b"old\n"), File("driver-2.out", b"new\n")]
    live = FakeLiveLogs({MASTER: files})
    live.removed = {"driver-1.out"}
    reader = Reader(live, lines=lines)
    assert reader.read() == [(MASTER, "driver-2.out", "new\n")]
    assert reader.notes == [f"container {MASTER} has no log file driver-1.out (any more)"]


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


def test_rotated_files_come_first_and_oldest_first() -> None:
    names = ("a.log", "a.log.1", "a.log.10", "a.log.2", "b.out", "c.1")
    live = FakeLiveLogs({MASTER: [File(name, name.encode()) for name in names]})
    shown = [file for _, file, _ in Reader(live).read()]
    assert shown == ["a.log.10", "a.log.2", "a.log.1", "a.log", "b.out", "c.1"]


def test_follow_goes_on_over_a_rotation() -> None:
    file = File("m.log", b"1\n2\n")
    live = FakeLiveLogs({MASTER: [file, File("m.log.1", b"0\n")]})
    reader = Reader(live, time_s=10.0)
    reader.services.properties = {}
    running = application()

    def rotate() -> None:
        older = File("m.log.1", b"1\n2\n3\n"), File("m.log.2", b"0\n")
        live.by_container[MASTER] = [File("m.log", b"4\n"), *older]

    reader.during_sleep = [rotate]
    reader.cluster.upcoming = [running, running, ended(running)]
    text = "".join(text for _, _, text in reader.follow())
    assert text == "0\n1\n2\n3\n4\n"


def test_follow_waits_for_a_rotation_under_way() -> None:
    live = FakeLiveLogs({MASTER: [File("m.log", b"1\n2\n")]})
    reader = Reader(live, time_s=10.0)
    reader.services.properties = {}
    running = application()

    def being_rotated() -> None:
        live.by_container[MASTER] = [File(".m.log.rotating", b"1\n2\n3\n"), File("m.log", b"1\n2\n3\n")]

    def rotated() -> None:
        live.by_container[MASTER] = [File("m.log", b"4\n"), File("m.log.1", b"1\n2\n3\n")]

    reader.during_sleep = [being_rotated, rotated]
    reader.cluster.upcoming = [running, running, running, ended(running)]
    assert reader.follow() == [
        (MASTER, "m.log", "1\n2\n"), (MASTER, "m.log.1", "3\n"), (MASTER, "m.log", "4\n"),
    ]  # fmt: skip


# --- ended ----------------------------------------------------------------------


#: as YARN sorts them
ROTATED = {
    (MASTER, ".a.log.copying"): "5\n",
    (MASTER, ".a.log.rotating"): "4\n",
    (MASTER, "a.log"): "5\n6\n",
    (MASTER, "a.log.1"): "3\n",
    (MASTER, "a.log.10"): "0\n",
    (MASTER, "a.log.2"): "2\n",
    (MASTER, "a.log.3"): "1\n",
    # it was rotated just before the end, and nothing has been written since
    (MASTER, "b.out.1"): "8\n",
    (MASTER, "b.out.2"): "7\n",
    (WORKER, "a.log.1"): "9\n",
}


def test_rotated_files_on_hdfs_come_first_and_oldest_first() -> None:
    reader = Reader(application=ended(application()), collected=ROTATED)
    assert "".join(text for _, _, text in reader.read()) == "".join(f"{number}\n" for number in range(10))
    last = Reader(application=ended(application()), collected=ROTATED, lines=1)
    assert [text for _, _, text in last.read()] == [f"{number}\n" for number in (0, 1, 2, 3, 4, 6, 7, 8, 9)]


def test_follow_goes_on_in_rotated_files_on_hdfs() -> None:
    live = [
        *(File("m.log", b"2\n3\n"), File("m.log.1", b"1\n"), File("n.out", b"7\n")),
        *(File("o.out", b"8\r\n"), File("o.out.1", b"6\n")),
    ]
    reader = Reader(
        FakeLiveLogs({MASTER: live}),
        collected={
            (MASTER, "m.log"): "5\n",
            (MASTER, "m.log.1"): "2\n3\n4\n",
            (MASTER, "m.log.2"): "1\n",
            # emptied, and its copy not yet in its place
            (MASTER, ".n.out.rotating"): "7\n8\n",
            # with other line ends
            (MASTER, "o.out"): "8\n",
            (MASTER, "o.out.1"): "6\n",
        },
        time_s=11.0,
    )
    directory = f"/tmp/logs/ann/bucket-logs-tfile/0007/{APPLICATION}"
    reader.services.fs.make_directory(directory)
    reader.services.fs.write(f"{directory}/node1_1", b"")
    running = application()
    reader.cluster.upcoming = [ended(running)]
    assert [(file, text) for _, file, text in reader.follow()] == [
        ("m.log.1", "1\n"), ("m.log", "2\n3\n"), ("n.out", "7\n"),
        ("o.out.1", "6\n"), ("o.out", "8\r\n"),
        ("m.log.1", "4\n"), ("m.log", "5\n"), (".n.out.rotating", "8\n"),
    ]  # fmt: skip


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


def with_files(*names: str, **arguments: Any) -> Reader:
    """Of an ended application, of which nodes have written these files to HDFS."""
    reader = Reader(collected={(MASTER, "m.log"): "x\n"}, **arguments)
    directory = f"/tmp/logs/ann/bucket-logs-tfile/0007/{APPLICATION}"
    reader.services.fs.make_directory(directory)
    for name in names:
        reader.services.fs.write(f"{directory}/{name}", b"")
    return reader


@pytest.mark.parametrize(
    ("files", "said", "waits"),
    [
        (["node1_1"], True, True),
        (["node1_1"], False, False),
        (["node1_1"], None, False),
        (["node1_1"], YarnUnavailable("it is starting"), False),
        ([], True, True),
        ([], None, True),
        ([], YarnUnavailable("it is starting"), True),
        # it is off, or has failed
        ([], False, False),
    ],
)
def test_the_resource_manager_knows_whether_nodes_have_not_begun(
    files: list[str], said: bool | YarnflowError | None, waits: bool
) -> None:
    over = ended(application())
    reader = with_files(*files, application=over, time_s=11.0)
    reader.cluster.upcoming = [
        said if isinstance(said, YarnflowError) else replace(over, collecting_logs=said),
        replace(over, collecting_logs=False),
    ]
    assert reader.read() == [(MASTER, "m.log", "x\n")]
    assert reader.notes == (["waiting for YARN to collect the logs on HDFS"] if waits else [])
    assert len(reader.cluster.upcoming) == (0 if waits else 1)


def test_what_there_is_is_shown_where_a_node_never_ends() -> None:
    over = replace(ended(application()), collecting_logs=True)
    late = with_files("node1_1", "lost_node_1.tmp", application=over, time_s=10_000.0)
    assert late.read() == [(MASTER, "m.log", "x\n")]
    assert late.notes == []


def test_waits_only_so_long_and_says_where_it_looked() -> None:
    reader = Reader(application=ended(application()), time_s=11.0)
    with pytest.raises(YarnError, match=r"not on HDFS \(looked in /tmp/logs/ann/bucket-logs-tfile/0007/appl"):
        reader.read()
    assert 70 <= reader.time_s < 75
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

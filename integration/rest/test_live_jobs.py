"""The REST interface of a real cluster with real jobs: every path answered with what was measured."""

from __future__ import annotations

import re
import socket
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

import msgspec
import pytest

from integration.conftest import Commands, Started, commands_in, wait_until
from integration.rest.client import Answer, Follower, Rest
from integration.shared_cluster import SLOTS, ClusterKeeper
from tests.patience import PATIENCE
from yarnflow.rest.framework.route import Route
from yarnflow.rest.framework.server import IDLE_TIMEOUT_S, MAX_CONNECTIONS
from yarnflow.rest.routes import SECTIONS

#: Python functions, event time, a shuffle
STREAM: Final = """
import time
from pyflink.common import Duration, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from yarnflow.api import RateSource

class Now(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return int(time.time() * 1000)

class Text(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield str(value)

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)
env.enable_checkpointing(3600_000)
numbers = env.from_source(RateSource(rows_per_second=50)).map(lambda row: row[1], output_type=Types.LONG())
times = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1)).with_timestamp_assigner(Now())
keyed = numbers.assign_timestamps_and_watermarks(times).key_by(lambda number: number % 5)
keyed.process(Text(), output_type=Types.STRING()).print()
env.execute("stream")
"""
SCRIPT: Final = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.appName("a script").getOrCreate()
rows = spark.readStream.format("rate").option("rowsPerSecond", 20).load()
rows = rows.withWatermark("timestamp", "1 second")
query = rows.selectExpr("timestamp", "value % 3 AS part").groupBy("part").count().writeStream
query = query.outputMode("complete").format("noop").option("checkpointLocation", {output!r})
query.queryName("by_part").start().awaitTermination()
"""
IDLE: Final = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.appName("idle").getOrCreate()
lines = spark.readStream.text({output!r})
lines.writeStream.format("noop").queryName("lines").start().awaitTermination()
"""
FAILING: Final = """
from yarnflow.api import *
env = StreamExecutionEnvironment.get_execution_environment()

def refuse(row):
    raise ValueError("no row is good enough")

env.from_source(RateSource(rows_per_second=5)).map(refuse, output_type="n LONG").print()
env.execute("fails")
"""
#: what a vertex has after some seconds
_MEASURED: Final = ("numRecordsIn", "numRecordsOut", "busyTimeMsPerSecond", "idleTimeMsPerSecond")


@dataclass
class Live:
    """Jobs on a cluster, and clients of each kind."""

    commands: Commands
    directory: Path
    options: tuple[str, ...]
    writer: Rest
    reader: Rest
    nobody: Rest
    #: connections that send a byte now and then, since the cluster is there
    slow: list[socket.socket]
    submits: dict[str, Started]
    ids: dict[str, str]

    def submit(self, name: str, program: str, *options: str) -> None:
        """Begin to submit; jobs start beside each other."""
        file = self.directory / f"{name}.py"
        file.write_text(program.replace("{output!r}", repr(str(self.directory / f"{name}-out"))))
        self.submits[name] = self.commands.start("submit", "--detached", *self.options, *options, file)

    def job(self, name: str) -> str:
        """Id of a job."""
        if name not in self.ids:
            submit = self.submits[name]
            assert submit.wait() == 0, submit.stderr
            found = re.search(r"\b[0-9a-f]{32}\b", submit.stdout + submit.stderr)
            assert found, submit.stdout + submit.stderr
            self.ids[name] = found[0]
        return self.ids[name]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory, cluster_keeper: ClusterKeeper) -> Iterator[Live]:
    """Four jobs on the cluster that tests share."""
    directory = tmp_path_factory.mktemp("live")
    with commands_in(directory) as commands, cluster_keeper.lent() as shared:
        writer = shared.rest
        reader, nobody = replace(writer, token=shared.read_token), replace(writer, token="")
        slow = [_slow_client(writer.url) for _ in range(20)]
        cluster = Live(commands, directory, shared.options, writer, reader, nobody, slow, {}, {})
        cluster.submit("stream", STREAM)
        cluster.submit("script", SCRIPT, "-p", "1")
        (directory / "idle-out").mkdir()
        cluster.submit("idle", IDLE, "-p", "1", "-Dexecution.checkpointing.interval=1h")
        cluster.submit("failing", FAILING, "-p", "1", "-Drestart-strategy.type=none")
        yield cluster
        for connection in slow:
            connection.close()
        for job_id in shared.live_jobs():
            shared.cancel(job_id)


def _slow_client(address: str) -> socket.socket:
    parts = urlsplit(address)
    assert parts.hostname and parts.port
    connection = socket.create_connection((parts.hostname, parts.port))
    connection.sendall(b"GET /overview HTTP/1.1\r\nHost: x\r\nX-Slow: ")
    return connection


@pytest.mark.gate
def test_a_life_of_a_job_as_events(live: Live) -> None:
    """1. the job runs  2. a checkpoint  3. the client loses its connection and misses a checkpoint
    4. it comes back: nothing twice, nothing missed  5. stop with a savepoint ends job and stream."""
    job_id = live.job("script")
    first = Follower(live.reader, job_id)
    wait_until(lambda: "RUNNING" in first.states, "the job to run")
    wait_until(lambda: any(data["queries"] for data in first.of("progress")), "progress")
    path = f"/jobs/{job_id}/checkpoints"

    def checkpoint() -> int:
        done = live.writer.completed(f"{path}/{live.writer.post(path, {})['request-id']}")
        return int(done["checkpointId"])

    def complete(follower: Follower) -> list[int]:
        told = [data["checkpoint"] for data in follower.of("checkpoint")]
        return [each["id"] for each in told if each["status"] == "COMPLETED"]

    seen = checkpoint()
    wait_until(lambda: seen in complete(first), "the checkpoint to be told")
    last = first.leave()
    missed = checkpoint()
    second = Follower(live.reader, job_id, last)
    wait_until(lambda: missed in complete(second), "the missed checkpoint to be told")
    assert seen not in complete(second) and "RUNNING" not in second.states

    target = live.directory / "savepoints"
    body = {"targetDirectory": str(target), "drain": False}
    trigger = live.writer.post(f"/jobs/{job_id}/stop", body)["request-id"]
    location = live.writer.completed(f"/jobs/{job_id}/savepoints/{trigger}")["location"]
    assert urlsplit(location).path.startswith(str(target)) and Path(urlsplit(location).path).is_dir()
    assert second.ended.wait(PATIENCE.condition_s), "the stream ends with the job"
    assert second.states[-1] == "FINISHED"
    assert live.writer.state(job_id) == "FINISHED"
    result = live.reader.get(f"/jobs/{job_id}/execution-result")
    assert result["job-execution-result"]["application-status"] == "SUCCEEDED"
    assert live.writer.ask("PATCH", f"/jobs/{job_id}").status == 409, "it has ended otherwise"
    # a savepoint nobody needs any more
    trigger = live.writer.post("/savepoint-disposal", {"savepoint-path": location}, 200)["request-id"]
    assert live.writer.completed(f"/savepoint-disposal/{trigger}") == {}
    assert not Path(urlsplit(location).path).exists()
    again = live.writer.post("/savepoint-disposal", {"savepoint-path": location}, 200)["request-id"]
    assert "failure-cause" in live.writer.completed(f"/savepoint-disposal/{again}")


@pytest.mark.may_rerun("a busy JVM answers late")
def test_what_failed_is_told_with_the_python_traceback_first(live: Live) -> None:
    job_id = live.job("failing")
    assert live.reader.await_state(job_id, "FAILED", "FINISHED", "CANCELED") == "FAILED"
    (entry, *_) = live.reader.get(f"/jobs/{job_id}/exceptions")["exceptionHistory"]["entries"]
    text = entry["stacktrace"]
    assert "ValueError: no row is good enough" in text.splitlines()[0], text
    assert 0 < text.index("in refuse") < (text + "\tat org.apache.spark").index("\tat "), text
    result = live.reader.get(f"/jobs/{job_id}/execution-result")["job-execution-result"]
    assert "no row is good enough" in result["failure-cause"]["stack-trace"]
    assert live.reader.get(f"/jobs/{job_id}/exceptions?maxExceptions=0")["exceptionHistory"]["truncated"]


def _measures(rest: Rest, path: str, subtasks: int) -> bool:
    """Return whether all subtasks of a vertex have told their numbers."""
    told = {metric["id"] for metric in rest.get(f"{path}/metrics")}
    return {f"{index}.{name}" for index in range(subtasks) for name in _MEASURED} <= told


@pytest.mark.gate
def test_numbers_are_measured(live: Live) -> None:
    rest, job_id = live.reader, live.job("stream")
    rest.await_state(job_id, "RUNNING")

    def measured() -> list[Any] | None:
        vertices = rest.get(f"/jobs/{job_id}")["vertices"]
        told = [each["metrics"] for each in vertices]
        known = all(
            each[f"{way}-records-complete"] and each[f"{way}-records"] > 0
            for each in told
            for way in ("read", "write")
        )
        return vertices if known else None

    vertices = wait_until(measured, "records of every vertex")
    assert {vertex["status"] for vertex in vertices} == {"RUNNING"}
    for vertex in vertices:
        path = f"/jobs/{job_id}/vertices/{vertex['id']}"
        subtasks = rest.get(path)["subtasks"]
        assert len(subtasks) == vertex["parallelism"] == 2
        assert all(each["taskmanager-id"] and each["endpoint"].partition(":")[0] for each in subtasks)
        assert all(each["status-duration"]["RUNNING"] > 0 for each in subtasks)
        aggregated = rest.get(path)["aggregated"]["metrics"]["read-records"]
        assert aggregated["min"] <= aggregated["avg"] <= aggregated["max"] <= aggregated["sum"]
        (manager,) = rest.get(f"{path}/taskmanagers")["taskmanagers"]
        assert manager["status-counts"]["RUNNING"] == 2
        times = rest.get(f"{path}/subtasktimes")["subtasks"]
        assert all(each["timestamps"]["RUNNING"] >= each["timestamps"]["SCHEDULED"] > 0 for each in times)
        pressure = wait_until(
            lambda: told if (told := rest.get(f"{path}/backpressure"))["status"] == "ok" else None,
            "how the time of subtasks is divided",
        )
        for each in pressure["subtasks"]:
            assert 0.9 <= each["ratio"] + each["idleRatio"] + each["busyRatio"] <= 1.1, each
        # the first rows may all have come to one subtask
        wait_until(partial(_measures, rest, path, subtasks=2), "numbers of both subtasks")
        records = rest.get(f"{path}/metrics?get=0.numRecordsIn,1.numRecordsIn")
        (total,) = rest.get(f"{path}/subtasks/metrics?get=numRecordsIn&agg=sum,min")
        assert sum(float(each["value"]) for each in records) <= total["sum"] > total["min"] >= 0
        assert set(total) == {"id", "sum", "min"}
        assert float(rest.get(f"{path}/subtasks/0/metrics?get=numRecordsIn")[0]["value"]) >= 0

    def watermarks() -> list[float] | None:
        found = [
            float(each["value"]) / 1000
            for vertex in vertices
            for each in rest.get(f"/jobs/{job_id}/vertices/{vertex['id']}/watermarks")
        ]
        return found if found and max(found) > time.time() - 600 else None

    assert max(wait_until(watermarks, "watermarks")) <= time.time()
    (uptime,) = rest.get(f"/jobs/{job_id}/metrics?get=uptime")
    assert float(uptime["value"]) > 0
    (memory,) = rest.get("/jobmanager/metrics?get=Status.Python.Memory.Resident")
    assert float(memory["value"]) > 10 << 20
    (manager,) = rest.get("/taskmanagers")["taskmanagers"]
    assert manager["slotsNumber"] == SLOTS and manager["freeSlots"] <= SLOTS - 2
    names = [each["id"] for each in rest.get("/taskmanagers/metrics")]
    assert names and float(rest.get(f"/taskmanagers/metrics?get={quote(names[0])}&agg=max")[0]["max"]) >= 0
    overview = rest.get("/overview")
    assert (overview["taskmanagers"], overview["slots-total"]) == (1, SLOTS)


@pytest.mark.gate
def test_checkpoints_are_begun_listed_and_told(live: Live) -> None:
    rest, job_id = live.writer, live.job("stream")
    rest.await_state(job_id, "RUNNING")
    trigger = "0123456789abcdef" * 2
    body = {"target-directory": str(live.directory / "kept"), "triggerId": trigger}
    path = f"/jobs/{job_id}/savepoints"
    assert {rest.post(path, body)["request-id"] for _ in range(3)} == {trigger}
    location = rest.completed(f"{path}/{trigger}")["location"]
    told = rest.get(f"/jobs/{job_id}/checkpoints")
    savepoints = [each for each in told["history"] if each["is_savepoint"]]
    assert [each["external_path"] for each in savepoints] == [location], "asked three times, taken once"
    (savepoint,) = savepoints
    assert savepoint["status"] == "COMPLETED" and savepoint["end_to_end_duration"] > 0
    assert savepoint["checkpointed_size"] > 0
    assert rest.get(f"/jobs/{job_id}/checkpoints/details/{savepoint['id']}")["id"] == savepoint["id"]
    assert rest.get(f"/jobs/{job_id}/checkpoints/config")["interval"] == 3_600_000
    assert told["latest"]["savepoint"]["id"] == savepoint["id"]


def test_a_job_without_work_is_up_to_date_unless_a_batch_is_in_no_checkpoint(live: Live) -> None:
    rest, job_id = live.writer, live.job("idle")
    path = f"/jobs/{job_id}/checkpoints"

    def kept_after(before_ms: int) -> int | None:
        found: int = rest.get(path)["kept_until_timestamp"]
        return found if found > before_ms else None

    def batch_is_committed() -> bool:
        return any(query["batch-id"] >= 0 for query in rest.get(f"/jobs/{job_id}")["queries"])

    first_ms = wait_until(lambda: kept_after(-1), "a job that has read all")
    assert first_ms >= rest.get(f"/jobs/{job_id}")["start-time"]
    (live.directory / "idle-out" / "lines.txt").write_text("one\n")
    wait_until(batch_is_committed, "the batch")
    before_ms = rest.get(path)["kept_until_timestamp"]
    rest.completed(f"{path}/{rest.post(path, {})['request-id']}")
    told = rest.get(path)
    assert told["counts"]["completed"] == 1
    checkpoint_ms = told["history"][0]["latest_ack_timestamp"]
    assert before_ms < checkpoint_ms <= told["kept_until_timestamp"]
    assert wait_until(lambda: kept_after(checkpoint_ms), "a later time without work") > before_ms
    assert rest.get(path)["counts"]["completed"] == 1


def test_a_job_that_has_read_nothing_since_its_savepoint_has_a_checkpoint(live: Live) -> None:
    """Of its query only Spark's logs know where it is."""
    rest, stopped = live.writer, live.job("idle")
    path = f"/jobs/{stopped}"
    stop = rest.post(f"{path}/stop", {"targetDirectory": str(live.directory / "kept"), "drain": False})
    location = rest.completed(f"{path}/savepoints/{stop['request-id']}")["location"]
    live.submit("idle", IDLE, "-p", "1", "--restore", location)
    del live.ids["idle"]
    path = f"/jobs/{live.job('idle')}"

    def checkpoint() -> dict[str, Any] | None:
        # one that is being written is in it, too
        history = rest.get(f"{path}/checkpoints")["history"]
        return next((each for each in history if each["status"] == "COMPLETED"), None)

    first = wait_until(checkpoint, "a checkpoint")
    assert not first["is_savepoint"]
    assert [query["batch-id"] for query in rest.get(path)["queries"]] == [-1]


@pytest.mark.may_rerun("a busy JVM answers late")
def test_logs_and_threads_of_every_process(live: Live) -> None:
    rest, job_id = live.reader, live.job("stream")
    rest.await_state(job_id, "RUNNING")
    (manager,) = rest.get("/taskmanagers")["taskmanagers"]
    task_manager = f"/taskmanagers/{quote(manager['id'], safe='')}"
    for process in (task_manager, "/jobmanager"):
        files = {each["name"]: each["size"] for each in rest.get(f"{process}/logs")["logs"]}
        name = max(files, key=lambda each: files[each])
        part = rest.ask("GET", f"{process}/logs/{quote(name)}", headers={"Range": "bytes=0-9"})
        assert (part.status, len(part.body)) == (206, 10)
        whole = rest.ask("GET", f"{process}/log")
        assert whole.status in (200, 206) and b"INFO" in whole.body
        assert rest.ask("GET", f"{process}/logs/..%2Frest-tokens.json").status in (400, 404)
    # a JVM may be too busy to tell of its threads in time, which is told in their place
    for process, names in (
        (task_manager, ["MainThread", "executor .*: .*"]),
        ("/jobmanager", ["MainThread"]),
        (f"/jobs/{job_id}/driver", ["MainThread", "driver: stream execution.*"]),
    ):
        wait_until(partial(_has_threads, rest, f"{process}/thread-dump", names), f"threads of {process}")
    assert rest.ask("GET", f"/jobs/{live.job('failing')}/driver/thread-dump").status in (404, 503)


def _has_threads(rest: Rest, path: str, names: Sequence[str]) -> bool:
    told = rest.get(path)["threadInfos"]
    assert all(each["stringifiedThreadInfo"] for each in told)
    return all(any(re.fullmatch(name, each["threadName"]) for each in told) for name in names)


@pytest.mark.gate
def test_who_may_read_and_who_may_write(live: Live) -> None:
    job = f"/jobs/{live.job('stream')}"
    # for one release, from this machine; not by a gateway on it
    assert live.nobody.ask("GET", "/jobs").headers["warning"].startswith("299 yarnflow")
    forwarded = {"X-Forwarded-For": "192.0.2.1"}
    assert live.nobody.ask("GET", "/jobs", headers=forwarded).status == 401
    assert replace(live.nobody, token="0" * 64).ask("GET", "/jobs").status == 401
    assert live.nobody.ask("GET", "/").status == 200, "the page, which asks for the token"
    cookie = {"Cookie": f"token={live.writer.token}", **forwarded}
    assert live.nobody.ask("GET", "/jobs", headers=cookie).status == 401
    assert live.nobody.ask("GET", "/jobs", headers={"X-Yarnflow-Token": live.reader.token}).status == 200
    for method, path, body in (
        ("PATCH", job, None), ("POST", f"{job}/stop", {}), ("POST", f"{job}/savepoints", {}),
        ("POST", "/savepoint-disposal", {"savepoint-path": "/x"}), ("DELETE", "/cluster", None),
        ("GET", f"{job}/yarn-cancel", None), ("PUT", f"{job}/yarn-stop", {"token": live.reader.token}),
    ):  # fmt: skip
        assert live.nobody.ask(method, path, body).status in (401, 403), path
        assert live.reader.ask(method, path, body).status == 403, path
    foreign = {"Origin": "http://elsewhere"}
    assert live.writer.ask("PATCH", job, headers=foreign).status == 403
    assert live.reader.state(live.job("stream")) == "RUNNING", "nothing of all that did anything"
    for read_only, token in ((True, live.reader.token), (False, live.writer.token)):
        told = live.commands.run("token", *live.options, *(["--read-only"] if read_only else []))
        assert told.stdout.strip() == token and live.nobody.url in told.stderr


#: in answer to a GET with parameters of things that there are, if it is not 200
_OTHERWISE: Final = {
    "/jobs/:jobid/checkpoints/details/:checkpointid/subtasks/:vertexid": 501,
    # there was none
    "/jobs/:jobid/checkpoints/:triggerid": 404,
    "/jobs/:jobid/savepoints/:triggerid": 404,
    "/savepoint-disposal/:triggerid": 404,
}
#: does not end
_SPARED: Final = "/jobs/:jobid/events"
_ROUTES: Final = [
    route
    for routes in SECTIONS.values()
    for route in routes
    if route.method == "GET" and not route.writes and route.path != _SPARED
]


@pytest.mark.gate
@pytest.mark.may_rerun("a busy JVM answers late")
def test_every_path_of_the_table_answers_in_its_shape(live: Live) -> None:
    rest, job_id = live.reader, live.job("stream")
    rest.await_state(job_id, "RUNNING")
    vertex_id = rest.get(f"/jobs/{job_id}")["vertices"][0]["id"]
    attempt = rest.get(f"/jobs/{job_id}/vertices/{vertex_id}/subtasks/0")["attempt"]
    history = rest.get(f"/jobs/{job_id}/checkpoints")["history"]
    (manager,) = rest.get("/taskmanagers")["taskmanagers"]
    known = {
        "jobid": job_id, "applicationid": job_id, "vertexid": vertex_id, "subtaskindex": "0",
        "attempt": str(attempt), "taskmanagerid": manager["id"], "triggerid": "f" * 32,
        "checkpointid": str(history[0]["id"]), "folder": "core", "file": "dom.js",
    }  # fmt: skip
    wrong = []
    for route in _ROUTES:
        filename = rest.get("/jobmanager/logs")["logs"][0]["name"]
        if route.path.startswith("/taskmanagers"):
            filename = rest.get(f"/taskmanagers/{quote(manager['id'], safe='')}/logs")["logs"][0]["name"]
        file = "app.js" if route.path == "/dashboard/:file" else known["file"]
        values = {"filename": filename, "datasetid": "d", "rescaleuuid": "r", "operatorUid": "u", **known}
        values["file"] = file
        path = re.sub(r":(\w+)", lambda found: quote(values[found[1]], safe=""), route.path)
        answer = rest.ask("GET", path)
        if (fault := _fault(route, answer)) is not None:
            wrong.append(f"{path}: {fault}")
    assert not wrong, "\n".join(wrong)


def _fault(route: Route, answer: Answer) -> str | None:
    refused = route in SECTIONS["Without a counterpart"]
    expected = 501 if refused else _OTHERWISE.get(route.path, 200)
    if answer.status != expected:
        return f"{answer.status}, not {expected}: {answer.body!r:.300}"
    if expected != 200:
        return None if answer.json["errors"][0] else "no reason"
    if not answer.headers["content-type"].startswith("application/json"):
        # nothing may have been printed
        return None if answer.body or route.path.endswith("/stdout") else "nothing"
    try:
        msgspec.json.decode(answer.body, type=route.answer)
    except msgspec.ValidationError as error:
        return f"{error}"
    return None


@pytest.mark.may_rerun("a busy JVM answers late")
def test_many_and_bad_clients_harm_nothing(live: Live) -> None:
    rest, job = live.writer, f"/jobs/{live.job('stream')}"
    rest.await_state(live.job("stream"), "RUNNING")
    large = rest.ask("POST", f"{job}/savepoints", {"target-directory": "x" * 100_000})
    assert large.status == 413
    # said only, never sent
    connection = _slow_client(rest.url)
    connection.sendall(b"x\r\n\r\n")
    connection.close()
    for claimed in (b"99999999999", b"-1", b"x"):
        parts = urlsplit(rest.url)
        with socket.create_connection((parts.hostname, parts.port)) as bad:
            bad.settimeout(PATIENCE.answer_s)
            head = b"POST %s/stop HTTP/1.1\r\nHost: localhost\r\nContent-Length: %s\r\n\r\n"
            bad.sendall(head % (job.encode(), claimed))
            assert bad.recv(1000).split()[1:2] in ([b"413"], [b"400"], [b"401"])
    paths = ["/overview", "/jobs/overview", job, f"{job}/checkpoints", "/taskmanagers"]
    with ThreadPoolExecutor(200) as pool:
        asked = [pool.submit(_status, rest, paths[number % len(paths)]) for number in range(1_000)]
        statuses = Counter(each.result() for each in asked)
    assert statuses == {200: 1_000}
    assert len(live.slow) + 200 < MAX_CONNECTIONS, "they had a place"
    assert rest.state(live.job("stream")) == "RUNNING"


def _status(rest: Rest, path: str) -> int:
    """That of an answer in the end; a server that has enough to do says so at once."""
    give_up_s = time.monotonic() + PATIENCE.condition_s
    while (status := rest.ask("GET", path).status) == 503 and time.monotonic() < give_up_s:
        time.sleep(0.2)
    return status


@pytest.mark.may_rerun("a busy JVM answers late")
def test_slow_clients_are_left(live: Live) -> None:
    """Those of the fixture have had their time by now."""
    for connection in live.slow:
        # the server has a time limit, and this is no shorter
        connection.settimeout(4 * IDLE_TIMEOUT_S)
        try:
            assert connection.recv(100) == b"", "no answer, but the end"
        except ConnectionError:
            continue


@pytest.mark.gate
def test_a_job_is_canceled(live: Live) -> None:
    rest, job_id = live.writer, live.job("stream")
    assert rest.ask("PATCH", f"/jobs/{job_id}?mode=cancel").status == 202
    assert rest.await_state(job_id, "CANCELED") == "CANCELED"
    assert rest.ask("PATCH", f"/jobs/{job_id}").status == 202, "it is what was asked for"
    states = {each["jid"]: each["state"] for each in rest.get("/jobs/overview")["jobs"]}
    assert {states[live.job(name)] for name in ("stream", "script", "failing")} == {
        "CANCELED", "FINISHED", "FAILED",
    }  # fmt: skip
    overview, ended = rest.get("/overview"), Counter(states.values())
    assert overview["jobs-finished"] == ended["FINISHED"]
    assert overview["jobs-cancelled"] == ended["CANCELED"]
    assert overview["jobs-failed"] == ended["FAILED"]
    assert rest.get(f"/jobs/{job_id}/plan")["plan"]["nodes"], "of an ended job, too"

"""Keys of a real Redis: each element counts once, whatever happens between two commits."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from integration.redis import PASSWORD, Redis
from integration.servers import running
from integration.spark.test_elements import environment
from integration.spark.test_jdbc_sink import FILES, KEYS, LINES, Crash, attempt, graph_of
from yarnflow.api import FileSource, Row
from yarnflow.api.common import Types
from yarnflow.api.datastream.connectors.redis import (
    RedisCommand,
    RedisCommandDescription,
    RedisConfig,
    RedisMapper,
    RedisSink,
)
from yarnflow.core.ids import JobId
from yarnflow.errors import ServerError, ServerUnavailable, SinkTaken, YarnflowError
from yarnflow.graph.job_graph import JobGraph
from yarnflow.operators.databases.tokens import RunToken
from yarnflow.spark.connectors.redis.sink import RedisWriter
from yarnflow.spark.connectors.redis.store import RedisStore

LINE = Types.ROW_NAMED(["word", "line"], [Types.STRING(), Types.INT()])


@pytest.fixture(scope="module")
def server() -> Iterator[Redis]:
    with running(Redis) as found:
        yield found


@pytest.fixture(autouse=True)
def clean(server: Redis) -> None:
    server.start()
    with server.client() as client:
        client.flushall()


class Counts(RedisMapper):
    """A counter per word."""

    def get_command_description(self) -> RedisCommandDescription:
        return RedisCommandDescription(RedisCommand.HINCRBY, "counts")

    def get_key_from_data(self, data: Any) -> str:
        return str(data.word)

    def get_value_from_data(self, data: Any) -> int:
        return 1


class Lines(RedisMapper):
    """All lines in a list."""

    def get_command_description(self) -> RedisCommandDescription:
        return RedisCommandDescription(RedisCommand.RPUSH)

    def get_key_from_data(self, data: Any) -> bytes:
        return b"lines"

    def get_value_from_data(self, data: Any) -> int:
        return int(data.line)


def counting(directory: Path, config: RedisConfig, retries: int = 0) -> JobGraph:
    """Words counted and lines listed, one small file in each micro-batch."""
    directory.mkdir(exist_ok=True)
    for file in range(FILES):
        lines = (f"k{n % KEYS},{file * LINES + n}\n" for n in range(LINES))
        (directory / f"{file}.csv").write_text("".join(lines))
    env = environment(2)
    source = FileSource(str(directory), "csv", "word STRING, line INT", max_files_per_trigger=1)
    rows = env.from_source(source, None, "lines").map(lambda row: row, LINE)
    rows.sink_to(RedisSink(config, Counts(), retries))
    rows.sink_to(RedisSink(config, Lines(), retries))
    return graph_of(env)


def assert_each_once(server: Redis) -> None:
    with server.client() as client:
        lines = Counter(map(int, client.lrange("lines", 0, -1)))
        counts = client.hgetall("counts")
    assert lines == Counter(range(FILES * LINES))
    assert counts == {f"k{key}": str(FILES * LINES // KEYS) for key in range(KEYS)}


@pytest.mark.parametrize("after_commit", [pytest.param(True, marks=pytest.mark.gate), False])
def test_a_crash_in_a_batch(
    spark: SparkSession, tmp_path: Path, server: Redis, monkeypatch: pytest.MonkeyPatch, after_commit: bool
) -> None:
    write, crashed = RedisWriter.write, list[int]()

    def crashing(self: RedisWriter, frame: DataFrame, batch_id: int) -> int:
        ends = batch_id == 2 and not crashed
        if ends:
            crashed.append(batch_id)
        if ends and not after_commit:
            raise Crash
        rows = write(self, frame, batch_id)
        if ends:
            raise Crash
        return rows

    monkeypatch.setattr(RedisWriter, "write", crashing)
    graph = counting(tmp_path / "in", server.config())
    with pytest.raises(YarnflowError):
        attempt(spark, graph, tmp_path / "checkpoint")
    attempt(spark, graph, tmp_path / "checkpoint", number=2)
    assert_each_once(server)


def test_a_note_that_is_gone(
    spark: SparkSession, tmp_path: Path, server: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch is written, and Redis evicts what says so before Spark has committed it."""
    write, keys = RedisWriter.write, list[str]()

    def evicting(self: RedisWriter, frame: DataFrame, batch_id: int) -> int:
        rows = write(self, frame, batch_id)
        if batch_id == 2 and not keys:
            keys.append(f"yarnflow:batches:{self._id}")
            with server.client() as client:
                assert client.delete(keys[0]) == 1
            raise Crash
        return rows

    monkeypatch.setattr(RedisWriter, "write", evicting)
    graph = counting(tmp_path / "in", server.config())
    with pytest.raises(YarnflowError):
        attempt(spark, graph, tmp_path / "checkpoint")
    for number in (2, 3):
        with pytest.raises(ServerError, match="is gone .* see whether batch 2 is there"):
            attempt(spark, graph, tmp_path / "checkpoint", number=number)
    with server.client() as client:
        client.hset(keys[0], "batch_id", "2")
    attempt(spark, graph, tmp_path / "checkpoint", number=4)
    assert_each_once(server)


def test_a_server_that_is_killed_and_comes_back(
    spark: SparkSession, tmp_path: Path, server: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = RedisWriter.write

    def killing(self: RedisWriter, frame: DataFrame, batch_id: int) -> int:
        if batch_id == 1:
            server.kill()
        return write(self, frame, batch_id)

    graph = counting(tmp_path / "in", server.config())
    where = f"^Redis at 127.0.0.1:{server.port}: "
    with monkeypatch.context() as patched:
        patched.setattr(RedisWriter, "write", killing)
        with pytest.raises(ServerUnavailable, match=where):
            attempt(spark, graph, tmp_path / "checkpoint")
    with pytest.raises(ServerUnavailable, match=where):
        # it is looked at before anything is read
        attempt(spark, graph, tmp_path / "checkpoint", number=2)
    server.start()
    attempt(spark, graph, tmp_path / "checkpoint", number=3)
    assert_each_once(server)


def test_an_answer_that_is_lost(server: Redis) -> None:
    """The transaction has come through, and nobody knows."""
    store = RedisStore(server.config()._server)
    token = RunToken(JobId("a" * 32), 1, 1).batch("sink", 0)
    store.claim(token)
    commands = [[b"INCRBY", b"n", b"5"], [b"PUBLISH", b"news", b"x"]]
    assert store.write(token, commands) == -1
    assert store.write(token, commands) == 2
    with server.client() as client:
        assert client.get("n") == "5"


def test_a_driver_that_was_replaced_is_refused(server: Redis) -> None:
    store = RedisStore(server.config()._server)
    first, second = (RunToken(JobId("a" * 32), 1, number) for number in (1, 2))
    store.claim(first.batch("sink"))
    assert store.write(first.batch("sink", 0), [[b"INCRBY", b"n", b"1"]]) == -1
    store.claim(second.batch("sink", 1))
    with pytest.raises(SinkTaken, match="if there is none, HDEL yarnflow:batches:sink job_id"):
        store.write(first.batch("sink", 1), [[b"INCRBY", b"n", b"1"]])
    with pytest.raises(SinkTaken):
        store.claim(first.batch("sink", 1))
    assert store.write(second.batch("sink", 1), [[b"INCRBY", b"n", b"1"]]) == -1
    with pytest.raises(ServerError, match="another job has gone on from the same checkpoint"):
        store.claim(RunToken(JobId("b" * 32), 1, 1).batch("sink", 0))
    with server.client() as client:
        assert client.get("n") == "2"
        client.delete("yarnflow:batches:sink")
    with pytest.raises(ServerError, match="is gone"):
        store.write(second.batch("sink", 2), [[b"INCRBY", b"n", b"1"]])


def test_a_command_that_redis_refuses(server: Redis) -> None:
    """Redis goes on behind it: the batch is there in part, and nothing goes on until somebody says so."""
    store = RedisStore(server.config()._server)
    run = RunToken(JobId("a" * 32), 1, 1)
    store.claim(run.batch("sink"))
    with server.client() as client:
        client.set("text", "none")
    commands = [[b"INCRBY", b"n", b"1"], [b"INCRBY", b"text", b"1"], [b"INCRBY", b"n", b"1"]]
    said = r"^Redis at 127.0.0.1:\d+: INCRBY text in batch 0: .*not an integer"
    with pytest.raises(ServerError, match=said):
        store.write(run.batch("sink", 0), commands)
    with pytest.raises(ServerError, match=f"{said}.*HDEL yarnflow:batches:sink failed"):
        store.claim(run.batch("sink", 0))
    with server.client() as client:
        assert client.get("n") == "2"
        client.hdel("yarnflow:batches:sink", "failed")
    store.claim(run.batch("sink", 0))
    assert store.write(run.batch("sink", 0), commands) == 3
    with pytest.raises(ServerError, match="not an integer.*; nothing of the batch was run$"):
        store.write(run.batch("sink", 1), commands[1:])
    with server.client() as client:
        assert client.get("n") == "2"
        client.delete("text")
    assert store.write(run.batch("sink", 1), commands[1:]) == -1
    with server.client() as client:
        assert (client.get("n"), client.get("text")) == ("3", "1")


def test_commands_that_failed_when_nobody_saw_it(server: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker dies before it has the answer; the batch is not taken for written all the same."""
    store = RedisStore(server.config()._server)
    run = RunToken(JobId("a" * 32), 1, 1)
    store.claim(run.batch("sink"))
    with server.client() as client:
        client.set("text", "none")
    redis = import_module("redis")
    execute = redis.Redis.execute_command

    def dying(self: Any, *arguments: Any, **options: Any) -> Any:
        found = execute(self, *arguments, **options)
        if arguments[0] == "EVAL":
            raise redis.exceptions.ConnectionError("gone")
        return found

    commands = [[b"INCRBY", b"n", b"1"], [b"INCRBY", b"text", b"1"]]
    with monkeypatch.context() as patched:
        patched.setattr(redis.Redis, "execute_command", dying)
        with pytest.raises(ServerUnavailable, match="gone"):
            store.write(run.batch("sink", 0), commands)
    with pytest.raises(ServerError, match="INCRBY text in batch 0: .*HDEL yarnflow:batches:sink failed"):
        store.write(run.batch("sink", 0), commands)


def test_a_server_that_takes_no_writes(server: Redis) -> None:
    """Full, or a replica after a failover: nothing of the batch is run."""
    store = RedisStore(server.config()._server)
    run = RunToken(JobId("a" * 32), 1, 1)
    store.claim(run.batch("sink"))
    commands = [[b"ZREM", b"set", b"a"], [b"INCRBY", b"n", b"1"]]
    with server.client() as client:
        client.zadd("set", {"a": 1})
        before = client.hgetall("yarnflow:batches:sink")
        client.config_set("maxmemory", "1")
        try:
            with pytest.raises(ServerUnavailable, match="'maxmemory'"):
                store.write(run.batch("sink", 0), commands)
        finally:
            client.config_set("maxmemory", "0")
        client.replicaof("127.0.0.1", "1")
        try:
            with pytest.raises(ServerUnavailable, match="read only replica"):
                store.write(run.batch("sink", 0), commands)
        finally:
            client.replicaof("NO", "ONE")
        assert client.zcard("set") == 1 and client.hgetall("yarnflow:batches:sink") == before
        assert store.write(run.batch("sink", 0), commands) == -1
        assert (client.zcard("set"), client.get("n")) == (0, "1")


def test_who_is_refused(spark: SparkSession, tmp_path: Path, server: Redis) -> None:
    graph = counting(tmp_path / "in", server.config(password="wrong-secret"))
    with pytest.raises(ServerError, match="refuses the password") as caught:
        attempt(spark, graph, tmp_path / "checkpoint")
    assert type(caught.value) is ServerError
    assert not re.search(f"secret|{re.escape(PASSWORD)}|\n", str(caught.value))


def test_all_commands(spark: SparkSession, tmp_path: Path, server: Redis) -> None:
    """What each does with key and value."""
    kinds = {
        RedisCommand.SET: ("", 0), RedisCommand.SETEX: ("", 100), RedisCommand.INCRBY: ("", 0),
        RedisCommand.DECRBY: ("", 0), RedisCommand.LPUSH: ("", 0), RedisCommand.RPUSH: ("", 0),
        RedisCommand.SADD: ("", 0), RedisCommand.PFADD: ("", 0), RedisCommand.PUBLISH: ("", 0),
        RedisCommand.HSET: ("hash", 0), RedisCommand.HINCRBY: ("counts", 0), RedisCommand.ZADD: ("sorted", 0),
        RedisCommand.ZINCRBY: ("scores", 0), RedisCommand.ZREM: ("removed", 0),
    }  # fmt: skip
    assert set(kinds) == set(RedisCommand)
    with server.client() as client:
        client.zadd("removed", {"zrem": 1, "stays": 2})
    env = environment(1)
    row = Types.ROW_NAMED(["value"], [Types.INT()])

    class One(RedisMapper):
        def __init__(self, command: RedisCommand, additional_key: str, ttl_s: int) -> None:
            self.key = command.value.lower()
            self.description = RedisCommandDescription(command, additional_key, ttl_s)

        def get_command_description(self) -> RedisCommandDescription:
            return self.description

        def get_key_from_data(self, data: Any) -> str:
            return self.key

        def get_value_from_data(self, data: Any) -> int:
            return int(data.value)

    # one stream: each source more is Python workers more in each batch
    stream = env.from_collection([Row(value=5)], row).map(lambda r: r, row)
    for command, (additional_key, ttl_s) in kinds.items():
        stream.sink_to(RedisSink(server.config(), One(command, additional_key, ttl_s)))
    attempt(spark, graph_of(env), tmp_path / "checkpoint")
    with server.client() as client:
        assert [client.get(key) for key in ("set", "setex", "incrby", "decrby")] == ["5", "5", "5", "-5"]
        assert 0 < client.ttl("setex") <= 100 and client.ttl("set") == -1
        assert client.lrange("lpush", 0, -1) == client.lrange("rpush", 0, -1) == ["5"]
        assert client.smembers("sadd") == {"5"} and client.pfcount("pfadd") == 1
        assert (client.hgetall("hash"), client.hgetall("counts")) == ({"hset": "5"}, {"hincrby": "5"})
        assert client.zrange("sorted", 0, -1, withscores=True) == [("zadd", 5.0)]
        assert client.zrange("scores", 0, -1, withscores=True) == [("zincrby", 5.0)]
        assert client.zrange("removed", 0, -1) == ["stays"]

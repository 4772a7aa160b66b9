"""What Redis' answers mean, by a server that gives those that a real one seldom gives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.spark.connectors.redis.fake_redis import END, OK, FakeRedis, array, error, running
from yarnflow.errors import ServerError, ServerUnavailable, SinkTaken
from yarnflow.graph.connectors.redis import RedisServer
from yarnflow.operators.databases.tokens import BatchToken, RunToken, StoredBatch
from yarnflow.spark.connectors.redis.script import packed
from yarnflow.spark.connectors.redis.store import RedisStore

RUN = RunToken("a" * 32, 2, 3)
COMMANDS = [[b"SET", b"customer:17", b"a secret"], [b"INCRBY", b"n", b"1"]]
DONE = array("done")


@pytest.fixture
def server() -> Iterator[FakeRedis]:
    with running() as found:
        yield found


def store(server: FakeRedis, **settings: Any) -> RedisStore:
    return RedisStore(RedisServer("127.0.0.1", server.port, **settings))


def note(batch_id: int, run: RunToken = RUN, **others: str) -> dict[str, str]:
    fields = {"job_id": run.job_id, "epoch": str(run.epoch), "attempt": str(run.attempt)}
    return {**fields, "batch_id": str(batch_id), "written_rows": "0", **others}


def batch(number: int) -> BatchToken:
    return RUN.batch("sink", number)


def test_a_script_has_what_was_read_and_what_it_becomes(server: FakeRedis) -> None:
    server.scripts = [DONE, DONE]
    assert store(server).claim(batch(-1)) == StoredBatch(RUN)
    run = [RUN.job_id.encode(), b"2", b"3"]
    assert server.requests[-1][2:] == [
        b"1", b"yarnflow:batches:sink", *[b""] * 6, *run, b"-1", b"0", b"batch -1", b""
    ]  # fmt: skip
    server.fields = note(6)
    assert store(server).write(batch(7), COMMANDS) == -1
    assert server.requests[-1][4:] == [
        *run, b"6", b"0", b"", *run, b"7", b"2", b"batch 7", packed(COMMANDS)
    ]  # fmt: skip
    assert packed([[b"A", b""]]) == b"\0\0\0\2\0\0\0\1A\0\0\0\0"


def test_a_server_before_redis_6(server: FakeRedis) -> None:
    """It knows no ``HELLO`` and no users, as the client's documents say of it."""
    few = error("ERR wrong number of arguments for 'auth' command")
    server.otherwise = lambda request: OK if request == [b"AUTH", b"pw"] else few
    server.scripts = [DONE]
    assert store(server, user="ann", password="pw").claim(batch(-1)) == StoredBatch(RUN)
    assert server.asked() == ["AUTH", "AUTH", "HMGET", "EVAL"]


def test_a_batch_that_is_there_is_not_run(server: FakeRedis) -> None:
    server.fields = note(7, written_rows="5")
    assert store(server).write(batch(7), COMMANDS) == 5 and server.asked() == ["HMGET"]
    server.fields = note(7, RunToken("a" * 32, 2, 4))
    with pytest.raises(SinkTaken):
        store(server).write(batch(8), COMMANDS)


def test_a_note_that_is_gone_while_the_job_runs(server: FakeRedis) -> None:
    with pytest.raises(ServerError, match="is gone .* HSET yarnflow:batches:sink batch_id 7 if it is, and 6"):
        store(server).write(batch(7), COMMANDS)
    assert server.asked() == ["HMGET"]


def test_who_may_not_write_is_told_how_to_let_go(server: FakeRedis) -> None:
    server.fields = note(7, RunToken("a" * 32, 2, 4))
    with pytest.raises(SinkTaken, match="if there is none, HDEL yarnflow:batches:sink job_id$"):
        store(server).claim(batch(8))
    del server.fields["job_id"]
    server.scripts = [DONE, DONE]
    assert store(server).claim(batch(8)) == StoredBatch(RUN, 7, 0)
    server.fields = note(7, RunToken("b" * 32))
    with pytest.raises(ServerError, match="or HSET yarnflow:batches:sink batch_id 2 if the rows may come"):
        store(server).claim(batch(3))
    server.fields["batch_id"] = "2"
    assert store(server).claim(batch(3)) == StoredBatch(RUN, 2, 0)


def test_a_note_that_changes_meanwhile_is_looked_at_again(server: FakeRedis) -> None:
    server.fields, server.scripts = note(6), [array("changed"), DONE]
    assert store(server).write(batch(7), COMMANDS) == -1
    assert server.asked() == ["HMGET", "EVAL"] * 2
    server.scripts = [array("changed")] * 5
    with pytest.raises(ServerError, match="yarnflow:batches:sink is always changed by others"):
        store(server).write(batch(7), COMMANDS)
    assert server.scripts == []


@pytest.mark.parametrize("answer", [None, END])
def test_an_answer_that_does_not_come(server: FakeRedis, answer: bytes | None) -> None:
    """Nobody knows whether the batch is there; it is sent once, and whoever comes again looks."""
    server.fields, server.scripts = note(6), [answer, DONE]
    with pytest.raises(ServerUnavailable, match="see whether it runs$"):
        store(server, timeout_ms=2_000).write(batch(7), COMMANDS)
    assert server.asked() == ["HMGET", "EVAL"]


@pytest.mark.parametrize(
    "said",
    [
        "OOM command not allowed when used memory > 'maxmemory'.",
        "@user_script: 21: -OOM command not allowed when used memory > 'maxmemory'.",
        "READONLY You can't write against a read only replica.",
        "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
        "MISCONF Errors writing to the AOF file: No space left on device",
        "BUSY Redis is busy running a script.",
        "LOADING Redis is loading the dataset in memory",
        "NOREPLICAS Not enough good replicas to write.",
    ],
)
def test_what_passes_is_tried_again(server: FakeRedis, said: str) -> None:
    server.fields, server.scripts = note(6), [error(said)]
    with pytest.raises(ServerUnavailable, match=re.escape(said.partition(" ")[2][-20:])):
        store(server).write(batch(7), COMMANDS)


def test_commands_that_fail(server: FakeRedis) -> None:
    """Nothing else is asked behind the script: it has noted itself what came of it."""
    server.fields, server.scripts = note(6), [array("failed", "INCRBY n in batch 7: ERR no\xa0integer")]
    said = f"Redis at 127.0.0.1:{server.port}: INCRBY n in batch 7: ERR no integer"
    rest = "the other commands of the batch were run, so set right what is wrong and HDEL "
    with pytest.raises(ServerError) as caught:
        store(server).write(batch(7), COMMANDS)
    assert str(caught.value) == f"{said}; {rest}yarnflow:batches:sink failed to go on behind it"
    assert type(caught.value) is ServerError and server.asked() == ["HMGET", "EVAL"]
    server.fields = note(7, failed="INCRBY n in batch 7: ERR no integer")
    for call in (store(server).claim, lambda token: store(server).write(token, COMMANDS)):
        with pytest.raises(ServerError, match="the other commands of the batch were run"):
            call(batch(7))
    server.fields, server.scripts = note(6), [array("refused", "SET customer:17 in batch 7: ERR no")]
    with pytest.raises(ServerError, match=": SET customer:17 in batch 7: ERR no; nothing of the batch was"):
        store(server).write(batch(7), COMMANDS)


def test_what_redis_refuses_has_no_values(server: FakeRedis) -> None:
    server.fields, server.scripts = note(6), [error("NOPERM this user has no permissions to run 'eval'")]
    with pytest.raises(ServerError, match="no permissions to run 'eval'") as caught:
        store(server).write(batch(7), COMMANDS)
    assert type(caught.value) is ServerError and "secret" not in str(caught.value)

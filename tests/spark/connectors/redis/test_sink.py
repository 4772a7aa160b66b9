"""Who may write a sink, and how a job knows that Redis has lost what it noted."""

from __future__ import annotations

import pytest

from tests.spark.connectors.rabbitmq.files_in_memory import FilesInMemory
from tests.spark.connectors.redis.fake_redis import END, FakeRedis, array, running
from yarnflow.errors import LeaseLost, ServerError, ServerUnavailable
from yarnflow.graph.closures import Closure
from yarnflow.graph.connectors.redis import RedisCommand, RedisServer, RedisSink
from yarnflow.operators.databases.tokens import RunToken
from yarnflow.spark.checkpoints.job import Fence, no_fence
from yarnflow.spark.connectors.redis.sink import ClaimMark, RedisWriter

MARK = "hdfs://c/job/sinks/query/sink.claimed"


def writer(server: FakeRedis, files: FilesInMemory, attempt: int = 1, fence: Fence = no_fence) -> RedisWriter:
    sink = RedisSink(RedisServer("127.0.0.1", server.port), RedisCommand.SET, Closure(b"", "f", ""))
    return RedisWriter(sink, None, "sink", RunToken("a" * 32, 1, attempt), ClaimMark(files, MARK, fence))


def test_a_note_that_is_gone_is_not_made_anew() -> None:
    """Else the batch that was planned, and may be there, would come twice."""
    files = FilesInMemory()
    with running() as server:
        server.scripts = [array("done")] * 3
        writer(server, files).open(-1)
        assert list(files.contents) == [MARK]
        with pytest.raises(ServerError) as caught:
            writer(server, files, 2).open(7)
        assert type(caught.value) is ServerError and server.asked() == ["HMGET", "EVAL", "HMGET"]
        assert str(caught.value) == (
            f"Redis at 127.0.0.1:{server.port}: the key yarnflow:batches:sink, which tells what the sink has "
            "written, is gone (deleted, evicted, or the server has lost it); see whether batch 7 is there, "
            "then HSET yarnflow:batches:sink batch_id 7 if it is, and 6 if it is not"
        )
        server.fields = {"batch_id": "6"}
        writer(server, files, 2).open(7)
        assert server.requests[-1][4:15] == [
            *(b"", b"", b"", b"6", b"", b""), *(b"a" * 32, b"1", b"2", b"6", b"-1")
        ]  # fmt: skip
        # a job that was started from a savepoint, or has a new sink: no attempt of it has claimed one
        server.fields = {}
        writer(server, FilesInMemory(), 1).open(7)


def test_what_is_not_claimed_is_not_marked() -> None:
    files = FilesInMemory()
    with running() as server:
        server.scripts = [END]
        with pytest.raises(ServerUnavailable):
            writer(server, files).open(-1)
        server.scripts = [array("done")]

        def lost() -> None:
            raise LeaseLost("gone")

        with pytest.raises(LeaseLost):
            writer(server, files, fence=lost).open(-1)
    assert not files.contents

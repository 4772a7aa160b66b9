"""What sinks have begun, as the directories of a job that has ended tell it; without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.spark.checkpoints.local_files import LocalFiles
from yarnflow.core.checkpoint.query_files import SINK_IDENTITY_FILE
from yarnflow.core.ids import JobId
from yarnflow.core.json_codec import to_json
from yarnflow.core.messages import ProgramKind
from yarnflow.errors import LeaseLost, StateDamaged
from yarnflow.graph.connectors.sinks import FileSink, JdbcSink
from yarnflow.graph.job_graph import JobGraph, StreamNode
from yarnflow.graph.operators import Sink
from yarnflow.graph.schema import Schema
from yarnflow.graph.state.sinks import SINKS_FILE, SinkEntries, SinkEntry, entry_of
from yarnflow.operators.databases.tokens import RunToken
from yarnflow.spark.checkpoints.sinks import read_sinks, sinks_left_behind
from yarnflow.spark.connectors.batch_sink import SinkPlace
from yarnflow.spark.run import sink_writers
from yarnflow.spark.run.sink_writers import AttemptOutput, SinkWriters
from yarnflow.spark.translate.query_groups import GraphIndex, QueryGroup

TABLE = JdbcSink("INSERT INTO t VALUES (?)", "jdbc:postgresql://db/shop")
#: Spark is not asked
NO_SPARK: Any = None


def node(sink: Sink, number: int = 1, name: str = "out") -> StreamNode:
    return StreamNode(
        number, name, f"{number:x}" * 32, sink, (0,), Schema(()), 1, 1, "", origin=f"job.py:{number}"
    )


def entries(*sinks: Sink) -> tuple[SinkEntry, ...]:
    found = [entry_of(node(sink, number)) for number, sink in enumerate(sinks, 1)]
    return tuple(entry for entry in found if entry is not None)


def query(directory: Path, saved: Sequence[SinkEntry], planned: int = 8, committed: int = 7) -> str:
    for log, batch in (("offsets", planned), ("commits", committed)):
        (directory / log).mkdir(parents=True, exist_ok=True)
        (directory / log / str(batch)).touch()
    (directory / "metadata").write_text('{"id":"12345678-9abc"}')
    (directory / SINKS_FILE).write_text(to_json(SinkEntries(tuple(saved))))
    return str(directory)


def begun(out: Path, batch: int, identity: str = "12345678", key: str = "11111111") -> None:
    staging = out / ".yarnflow-staging" / f"{identity}-{key}.abc"
    staging.mkdir(parents=True)
    (staging / "owner").touch()
    (staging / f"{batch}.json").write_text("{}")


def test_files_of_a_batch_that_was_begun_are_not_left_half(tmp_path: Path) -> None:
    out = tmp_path / "out"
    sink = FileSink(str(out), "csv")
    directory = query(tmp_path / "query", entries(sink))
    moved = entries(FileSink("/elsewhere", "csv"))
    assert sinks_left_behind(LocalFiles(), directory, ()) == ()
    # of a batch that was committed, and of others who write there
    begun(out, 7)
    begun(out, 8, "99999999")
    assert sinks_left_behind(LocalFiles(), directory, ()) == ()
    begun(out, 8, key="11111111.second")
    (said,) = sinks_left_behind(LocalFiles(), directory, ())
    assert f"sink 'out' to {out} (no uid, job.py:1) has written files of batch 8" in said
    assert "not in the program any more" in said and "--allow-non-restored-state" in said
    (said,) = sinks_left_behind(LocalFiles(), directory, moved)
    assert "writes to another place" in said
    assert sinks_left_behind(LocalFiles(), directory, entries(sink)) == ()
    # a job from a savepoint gives its files names of its own
    (tmp_path / "query" / SINK_IDENTITY_FILE).write_text("99999999-0000")
    (said,) = sinks_left_behind(LocalFiles(), directory, ())


def test_what_a_database_has_is_not_known(tmp_path: Path) -> None:
    directory = query(tmp_path / "query", entries(TABLE))
    (said,) = sinks_left_behind(LocalFiles(), directory, ())
    assert "may have all of batch 8 already" in said
    assert sinks_left_behind(LocalFiles(), query(tmp_path / "q2", entries(TABLE), planned=7), ()) == ()


def test_a_batch_of_sinks_that_were_not_noted_is_for_the_same_program(tmp_path: Path) -> None:
    directory = query(tmp_path / "query", ())
    (tmp_path / "query" / SINKS_FILE).unlink()
    (said,) = sinks_left_behind(LocalFiles(), directory, entries(TABLE))
    assert "batch 8" in said and "earlier development version" in said
    assert sinks_left_behind(LocalFiles(), directory, entries(TABLE), changed=False) == ()
    assert sinks_left_behind(LocalFiles(), directory, ()) == (), "nothing could come twice"


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / SINKS_FILE).write_text('{"sinks":[{"kind"')
    with pytest.raises(StateDamaged, match=f"{SINKS_FILE} is damaged: it cannot be understood"):
        read_sinks(LocalFiles(), str(tmp_path))


def places(
    monkeypatch: pytest.MonkeyPatch, job: Path, *nodes: StreamNode, fence: Any = lambda: None
) -> list[SinkPlace]:
    """What the sinks of an attempt are told."""
    found: list[SinkPlace] = []
    monkeypatch.setattr(sink_writers, "HadoopFiles", lambda spark: LocalFiles())
    monkeypatch.setattr(sink_writers, "batch_sink", found.append)
    source = replace(node(TABLE, 0), node_id=0, inputs=())
    index = GraphIndex(JobGraph(JobId("0" * 32), "job", ProgramKind.GRAPH, (source, *nodes)))
    group = QueryGroup("q", 0, 0, tuple(one.node_id for one in nodes), False, "append", False)
    output = AttemptOutput(str(job), RunToken("j"), fence)
    writers = SinkWriters(NO_SPARK, index, group, output, lambda: None)
    for one in nodes:
        writers.writer(one.node_id)
    return found


def test_sinks_are_called_as_the_checkpoint_calls_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    directory = tmp_path / "query-q"
    directory.mkdir()
    (directory / "metadata").write_text('{"id":"12345678-9abc"}')
    first = places(monkeypatch, tmp_path, node(FileSink("/out", "csv"), 1), node(TABLE, 2))
    assert [one.short_id for one in first] == ["12345678-11111111", "12345678-22222222"]
    # the next program: all stand elsewhere
    program = (node(TABLE, 4), node(FileSink("/out", "json"), 5), node(FileSink("/new", "csv"), 2))
    second = places(monkeypatch, tmp_path, *program)
    assert [one.full_id for one in second[:2]] == [first[1].full_id, first[0].full_id]
    assert second[2].full_id not in {one.full_id for one in first}
    written = (directory / SINKS_FILE).read_text()
    assert [one.full_id for one in places(monkeypatch, tmp_path, *program)] == [
        one.full_id for one in second
    ]
    assert (directory / SINKS_FILE).read_text() == written


def test_a_driver_that_lost_the_job_notes_no_sink(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def lost() -> None:
        raise LeaseLost("another driver has it")

    (tmp_path / "query-q").mkdir()
    (tmp_path / "query-q/metadata").write_text('{"id":"12345678-9abc"}')
    with pytest.raises(LeaseLost):
        places(monkeypatch, tmp_path, node(TABLE), fence=lost)
    assert not (tmp_path / "query-q" / SINKS_FILE).exists()

"""Documents of a real OpenSearch: those that come again replace themselves."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from integration.opensearch import OpenSearch
from integration.servers import running
from integration.spark.test_elements import environment
from integration.spark.test_jdbc_sink import Crash, attempt, graph_of
from yarnflow.api import FileSource, Row
from yarnflow.api.common import Types
from yarnflow.api.datastream.connectors.elasticsearch import (
    Elasticsearch7SinkBuilder,
    ElasticsearchEmitter,
    ElasticsearchSink,
    FlushBackoffType,
)
from yarnflow.errors import ElementMismatch, ServerError, ServerUnavailable, YarnflowError
from yarnflow.graph.job_graph import JobGraph
from yarnflow.spark.connectors.elasticsearch.sink import ElasticsearchWriter

FILES, LINES = 3, 40
TEXTS = Types.MAP(Types.STRING(), Types.STRING())


@pytest.fixture(scope="module")
def server() -> Iterator[OpenSearch]:
    with running(OpenSearch) as found:
        yield found


def static(server: OpenSearch, index: str, key: str | None = None) -> Elasticsearch7SinkBuilder:
    return server.builder().set_emitter(ElasticsearchEmitter.static_index(index, key))


def reading(directory: Path, sink: ElasticsearchSink) -> JobGraph:
    """One small file in each micro-batch."""
    directory.mkdir(exist_ok=True)
    for file in range(FILES):
        (directory / f"{file}.csv").write_text("".join(f"{file * LINES + n}\n" for n in range(LINES)))
    env = environment(2)
    source = FileSource(str(directory), "csv", "line INT", max_files_per_trigger=1)
    lines = env.from_source(source, None, "lines")
    lines.map(lambda row: {"line": str(row.line), "half": str(row.line % 2)}, TEXTS).sink_to(sink)
    return graph_of(env)


@pytest.mark.gate
@pytest.mark.parametrize("key", [pytest.param(None, marks=pytest.mark.drill), "line"])
def test_a_crash_in_a_batch(
    spark: SparkSession, tmp_path: Path, server: OpenSearch, monkeypatch: pytest.MonkeyPatch, key: str | None
) -> None:
    write, crashed = ElasticsearchWriter.write, list[int]()

    def crashing(self: ElasticsearchWriter, frame: DataFrame, batch_id: int) -> int:
        rows = write(self, frame, batch_id)
        if batch_id == 1 and not crashed:
            crashed.append(batch_id)
            raise Crash
        return rows

    monkeypatch.setattr(ElasticsearchWriter, "write", crashing)
    index = f"crash-{key or 'none'}"
    graph = reading(tmp_path / "in", static(server, index, key).set_bulk_flush_max_actions(7).build())
    with pytest.raises(YarnflowError):
        attempt(spark, graph, tmp_path / "checkpoint")
    attempt(spark, graph, tmp_path / "checkpoint", number=2)
    found = server.documents(index)
    assert sorted(int(document["line"]) for document in found.values()) == list(range(FILES * LINES))
    if key:
        assert all(name == document["line"] for name, document in found.items())


def test_a_server_that_is_killed_and_comes_back(
    spark: SparkSession, tmp_path: Path, server: OpenSearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = ElasticsearchWriter.write

    def killing(self: ElasticsearchWriter, frame: DataFrame, batch_id: int) -> int:
        if batch_id == 1:
            server.kill()
        return write(self, frame, batch_id)

    backoff = FlushBackoffType.CONSTANT
    sink = static(server, "killed").set_bulk_flush_backoff_strategy(backoff, 1, 10).build()
    graph = reading(tmp_path / "in", sink)
    where = f"^Elasticsearch at http://127.0.0.1:{server.port}: "
    try:
        with monkeypatch.context() as patched:
            patched.setattr(ElasticsearchWriter, "write", killing)
            with pytest.raises(ServerUnavailable, match=where):
                attempt(spark, graph, tmp_path / "checkpoint")
    finally:
        server.start()
    attempt(spark, graph, tmp_path / "checkpoint", number=2)
    found = server.documents("killed").values()
    assert sorted(int(document["line"]) for document in found) == list(range(FILES * LINES))


def test_values_and_updates(spark: SparkSession, tmp_path: Path, server: OpenSearch) -> None:
    """Indexes by a field; a document that is there gets the new fields."""
    before = {"id": "rome", "people": 3, "old": True}
    server.client().index(index="cities", body=before, id="rome", refresh=True)
    row = Types.ROW_NAMED(
        ["place", "id", "people", "since", "share"],
        [Types.STRING(), Types.STRING(), Types.INT(), Types.SQL_DATE(), Types.BIG_DEC()],
    )
    rows = [
        Row(place="cities", id="rome", people=4, since=dt.date(2024, 2, 29), share=Decimal("0.25")),
        Row(place="towns", id="ü/1", people=None, since=None, share=None),
    ]
    env = environment(1)
    sink = server.builder().set_emitter(ElasticsearchEmitter.dynamic_index("place", "id")).build()
    env.from_collection(rows, row).map(lambda r: r, row).sink_to(sink)
    attempt(spark, graph_of(env), tmp_path / "checkpoint")
    assert server.documents("cities") == {
        "rome": {
            "place": "cities", "id": "rome", "people": 4, "since": "2024-02-29", "share": "0.25", "old": True
        }
    }  # fmt: skip
    nothing = dict.fromkeys(("people", "since", "share"))
    assert server.documents("towns") == {"ü/1": {"place": "towns", "id": "ü/1", **nothing}}


def test_a_document_that_is_refused_is_named(spark: SparkSession, tmp_path: Path, server: OpenSearch) -> None:
    mappings = {"properties": {"half": {"type": "ip"}}}
    server.client().indices.create(index="typed", body={"mappings": mappings})
    graph = reading(tmp_path / "in", static(server, "typed", "line").build())
    said = r"^Elasticsearch does not take document \d+ of index typed: mapper_parsing_"
    with pytest.raises(ServerError, match=said) as caught:
        attempt(spark, graph, tmp_path / "checkpoint")
    assert type(caught.value) is ServerError and "\n" not in str(caught.value)


def test_elements_that_are_no_documents(spark: SparkSession, tmp_path: Path, server: OpenSearch) -> None:
    cases: dict[str, tuple[Any, str | None]] = {
        "no document: an Elasticsearch sink takes maps": ("text", None),
        "has no field 'id'": ({"a": "b"}, "id"),
        "is no JSON document": ({"a": object}, None),
    }
    for number, (said, (element, key)) in enumerate(cases.items()):
        env = environment(1)
        stream = env.from_collection([element], Types.PICKLED_BYTE_ARRAY())
        stream.sink_to(static(server, "none", key).build())
        with pytest.raises(ElementMismatch, match=said):
            attempt(spark, graph_of(env), tmp_path / str(number))

"""Which documents are sent when, and what is said of those that are not taken."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from yarnflow.errors import ServerError, ServerUnavailable
from yarnflow.graph.connectors.elasticsearch import ElasticsearchServer, ElasticsearchSink, FlushBackoff
from yarnflow.spark.connectors.elasticsearch.bulk import Document, chunks, waits_s, write_documents
from yarnflow.spark.connectors.elasticsearch.sink import SendDocuments


class Cluster:
    """Has no time for some documents, or refuses them."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], Any] = {}
        self.requests: list[list[str]] = []
        self.busy: dict[str, int] = {}
        self.refused: dict[str, Mapping[str, Any]] = {}
        self.away = 0
        self.closed = 0

    def send(self, lines: bytes) -> Sequence[Mapping[str, Any]]:
        if self.away:
            self.away -= 1
            raise ServerUnavailable("away")
        found = [json.loads(line) for line in lines.decode().splitlines()]
        answer: list[Mapping[str, Any]] = []
        self.requests.append([])
        for action, source in zip(found[::2], found[1::2], strict=True):
            ((kind, place),) = action.items()
            name = place["_id"]
            self.requests[-1].append(name)
            if self.busy.get(name, 0):
                self.busy[name] -= 1
                error = {"type": "es_rejected_execution_exception", "reason": "queue is full"}
                answer.append({kind: {"status": 429, "error": error}})
            elif name in self.refused:
                answer.append({kind: {"status": 400, "error": self.refused[name]}})
            else:
                self.kept[place["_index"], name] = source
                answer.append({kind: {"status": 201}})
        return answer

    def close(self) -> None:
        self.closed += 1


def documents(*names: str) -> list[Document]:
    return [Document("i", name, b'{"a":1}') for name in names]


def test_a_request_has_two_lines_for_each_document() -> None:
    lines = b"".join(d.lines for d in (Document("i", "ü", b"{}"), Document("i", "b", b'{"n":1}', True)))
    assert lines.decode().splitlines() == [
        '{"index":{"_index":"i","_id":"ü"}}', "{}",
        '{"update":{"_index":"i","_id":"b","retry_on_conflict":3}}', '{"doc":{"n":1},"doc_as_upsert":true}',
    ]  # fmt: skip


def test_only_what_was_not_taken_is_sent_again() -> None:
    cluster, waited = Cluster(), list[float]()
    cluster.busy = {"b": 2, "c": 1}
    write_documents(documents("a", "b", "c"), cluster.send, [1.0, 2.0, 4.0], waited.append)
    assert cluster.requests == [["a", "b", "c"], ["b", "c"], ["b"]] and waited == [1.0, 2.0]


def test_later_documents_of_an_id_are_sent_again_with_an_earlier_one() -> None:
    """Else the earlier one would be there in the end."""
    found = [Document("i", name, b'{"n":%d}' % n) for n, name in enumerate("abab")]
    busy = {"status": 429, "error": "no time"}
    requests, kept = list[list[tuple[str, int]]](), dict[str, int]()

    def send(lines: bytes) -> Sequence[Mapping[str, Any]]:
        parsed = [json.loads(line) for line in lines.splitlines()]
        ids, numbers = (place["index"]["_id"] for place in parsed[::2]), (one["n"] for one in parsed[1::2])
        pairs = list(zip(ids, numbers, strict=True))
        requests.append(pairs)
        refused = {0} if len(requests) == 1 else set()
        kept.update(pair for place, pair in enumerate(pairs) if place not in refused)
        return [{"index": busy if place in refused else {"status": 200}} for place in range(len(pairs))]

    with pytest.raises(ServerUnavailable, match="^1 documents were not taken, such as document a of"):
        write_documents(found, send, [], lambda _: None)
    requests.clear()
    write_documents(found, send, [1.0], lambda _: None)
    assert requests == [[("a", 0), ("b", 1), ("a", 2), ("b", 3)], [("a", 0), ("a", 2)]]
    assert kept == {"a": 2, "b": 3}


def test_a_document_that_others_update_as_well_is_sent_again() -> None:
    answers = [409, 200]
    found = [Document("i", "a", b"{}", True)]
    write_documents(found, lambda _: [{"update": {"status": answers.pop(0)}}], [1.0], lambda _: None)
    assert not answers


def test_a_cluster_that_is_away_is_waited_for() -> None:
    cluster, waited = Cluster(), list[float]()
    cluster.away = 2
    write_documents(documents("a"), cluster.send, [1.0, 1.0], waited.append)
    assert cluster.requests == [["a"]] and waited == [1.0, 1.0]
    cluster.away = 1
    with pytest.raises(ServerUnavailable, match="^away$"):
        write_documents(documents("a"), cluster.send, [], waited.append)
    cluster.busy = {"b": 9}
    with pytest.raises(ServerUnavailable, match="1 documents were not taken, such as document b of index i"):
        write_documents(documents("a", "b"), cluster.send, [0.0], waited.append)


def test_a_document_that_is_refused_is_named_and_not_sent_again() -> None:
    cluster = Cluster()
    cause = {"type": "date_time_parse_exception", "reason": "no date"}
    cluster.refused = {"b": {"type": "mapper_parsing_exception", "reason": "field [at]", "caused_by": cause}}
    with pytest.raises(ServerError) as caught:
        write_documents(documents("a", "b"), cluster.send, [1.0], lambda _: None)
    assert str(caught.value) == (
        "Elasticsearch does not take document b of index i: mapper_parsing_exception: field [at] "
        "(date_time_parse_exception: no date)"
    )
    assert type(caught.value) is ServerError and len(cluster.requests) == 1


def test_requests_are_limited() -> None:
    found = documents(*"abcde")
    assert [len(some) for some in chunks(found, 2, 10**6)] == [2, 2, 1]
    size = len(found[0].lines)
    assert [len(some) for some in chunks(found, 9, 3 * size)] == [3, 2]
    assert [len(some) for some in chunks(found, 9, 1)] == [1] * 5
    assert list(chunks([], 9, 9)) == []


def test_times_between_tries() -> None:
    assert waits_s(FlushBackoff.NONE, 3, 100) == []
    assert waits_s(FlushBackoff.CONSTANT, 2, 100) == [0.1, 0.1]
    assert waits_s(FlushBackoff.EXPONENTIAL, 3, 100) == [0.1, 0.2, 0.4]


def rows(*keys: str | None) -> Iterator[pa.RecordBatch]:
    for key in keys:
        yield pa.RecordBatch.from_pydict(
            {"index": ["i"], "id": pa.array([key], pa.string()), "source": [b'{"a":1}']}
        )


def test_documents_without_an_id_have_the_same_when_the_batch_is_done_again() -> None:
    cluster = Cluster()
    sink = ElasticsearchSink(ElasticsearchServer(("http://h:9200",)), "i", max_actions=2)
    for _ in range(2):
        task = SendDocuments(sink, "sink-7", connect=lambda _: cluster)
        (count,) = task(rows(None, "own", None))
        assert count.to_pydict() == {"count": [3]}
    assert set(cluster.kept) == {("i", "sink-7-0-0"), ("i", "own"), ("i", "sink-7-0-2")}
    assert cluster.kept["i", "own"] == {"doc": {"a": 1}, "doc_as_upsert": True}
    assert cluster.closed == 2


def test_an_empty_partition_connects_to_nobody() -> None:
    sink = ElasticsearchSink(ElasticsearchServer(("http://h:9200",)), "i")

    def connect(_: ElasticsearchServer) -> Cluster:
        raise AssertionError

    (count,) = SendDocuments(sink, "sink-7", connect=connect)(rows())
    assert count.to_pydict() == {"count": [0]}

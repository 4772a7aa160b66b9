"""What a script's writer says of its query, without Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from yarnflow.spark.script import identity
from yarnflow.spark.script.identity import QueryIdentities
from yarnflow.spark.script.places import CallPlaces


class Writer:
    """The signatures are those of Spark's ``DataStreamWriter``."""

    def __init__(self, **options: str) -> None:
        self.options = options
        self._spark = SimpleNamespace(conf=SimpleNamespace(get=lambda key, default: default))

    def queryName(self, name: str) -> None:
        self.options["queryName"] = name

    def option(self, key: str, value: str) -> None:
        self.options[key] = value

    def start(
        self, path: Any = None, format: Any = None, outputMode: Any = None, partitionBy: Any = None,
        queryName: Any = None, **options: Any,
    ) -> None:  # fmt: skip
        raise AssertionError("nothing is started here")

    def toTable(
        self, tableName: str, format: Any = None, outputMode: Any = None, partitionBy: Any = None,
        queryName: Any = None, **options: Any,
    ) -> None:  # fmt: skip
        raise AssertionError("nothing is started here")


class State:
    def qualified(self, location: str) -> str:
        return f"file:{location}"

    def bring(self, name: str, location: str) -> None:
        return None


def _identities(job_dir: str, directory: Path) -> QueryIdentities:
    state: Any = State()
    return QueryIdentities(CallPlaces(directory, directory / "job.py"), job_dir, state)


def _kept(writer: Writer) -> Callable[[str], str]:
    return lambda key: writer.options.get(key, "")


@pytest.mark.parametrize(
    ("kept", "call", "options", "places"),
    [
        ({}, (), {}, ("file:/job/counts",)),
        ({}, ("/out",), {}, ("file:/job/counts", "/out")),
        ({}, (), {"path": "/out"}, ("file:/job/counts", "/out")),
        ({"path": "hdfs://nn/out"}, (), {}, ("file:/job/counts", "hdfs://nn/out")),
        ({"path": "hdfs://nn/out"}, ("/out",), {}, ("file:/job/counts", "/out")),
        ({"checkpointLocation": "/own"}, (), {}, ("file:/own",)),
        ({}, (), {"checkpointLocation": "/own"}, ("file:/own",)),
    ],
)
def test_where_spark_writes_by_itself(
    kept: dict[str, str],
    call: tuple[str, ...],
    options: dict[str, str],
    places: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(identity, "_kept_options", _kept)
    writer, identities = Writer(queryName="counts", **kept), _identities("/job", tmp_path)
    assert identities.prepare(writer, Writer.start, call, options, None) == places
    assert identities.prepare(writer, Writer.toTable, ("t",), {}, None) == (), "a table's place is not known"


def test_nothing_is_known_of_a_job_without_a_directory(tmp_path: Path) -> None:
    assert _identities("", tmp_path).prepare(Writer(), Writer.start, ("/out",), {}, None) == ()

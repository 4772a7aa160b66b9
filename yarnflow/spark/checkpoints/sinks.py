"""Sinks of a query as its checkpoint has them, and what they have begun and not completed.

A program that goes on from a retained checkpoint does the batch again that was begun.  A sink that has begun
it must be there then, or some of the batch stays half written, or is written twice.  Savepoints have no such
batch, and what is started from one has new names for all it writes.  Flink counterpart: the committables in
the state of a sink.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from yarnflow.core.checkpoint.query_files import SINK_IDENTITY_FILE
from yarnflow.core.json_codec import from_json
from yarnflow.errors import RpcProtocolError
from yarnflow.graph.connectors.sinks import FileSink
from yarnflow.graph.state.sinks import SINKS_FILE, SinkEntries, SinkEntry, not_completed
from yarnflow.spark.checkpoints.positions import committed_batch, planned_batch
from yarnflow.spark.connectors.batch_sink import short_id
from yarnflow.spark.connectors.file_sink import has_manifest
from yarnflow.spark.hadoop_files import HadoopFiles


def read_sinks(files: HadoopFiles, directory: str) -> tuple[SinkEntry, ...]:
    """The sinks that a query's directory names; empty = it has not begun, or began before they were noted.

    Raises
    ------
    StateDamaged
        The file is damaged.
    """
    path = f"{directory}/{SINKS_FILE}"
    if not files.exists(path):
        return ()
    return files.parsed(path, _sinks)


def _sinks(text: str) -> tuple[SinkEntry, ...]:
    try:
        return from_json(SinkEntries, text).sinks
    except RpcProtocolError as error:
        raise ValueError(str(error)) from error


def read_identity(files: HadoopFiles, directory: str) -> str:
    """What all sinks of a query have in the names of what they write; empty = none yet."""
    renewed, metadata = f"{directory}/{SINK_IDENTITY_FILE}", f"{directory}/metadata"
    if files.exists(renewed):
        return files.read(renewed).decode()
    if not files.exists(metadata):
        return ""
    return files.parsed(metadata, lambda text: str(json.loads(text)["id"]))


def sinks_left_behind(
    files: HadoopFiles, directory: str, program: Sequence[SinkEntry], changed: bool = True
) -> tuple[str, ...]:
    """Why a program cannot complete the batch that was begun, one sentence for each sink; empty = it can.

    Parameters
    ----------
    directory : str
        Of the query, as a job that has ended left it.
    program : sequence of SinkEntry
        The query's sinks in the program.
    changed : bool
        It is another program than that which has begun the batch.

    Raises
    ------
    StorageError
        It cannot be found out.
    """
    begun = planned_batch(files, directory)
    if begun <= committed_batch(files, directory):
        return ()
    saved = read_sinks(files, directory)
    if not saved and changed and any(sink.exactly_once for sink in program):
        return (
            f"batch {begun} in {directory} was begun and not committed by an earlier development version, "
            "which did not note its sinks: start the job with the program as it was, or leave that batch "
            "(--allow-non-restored-state)",
        )
    identity = read_identity(files, directory)
    found: list[str] = []
    for sink, change in not_completed(saved, program):
        has = f"may have all of batch {begun} already, which was not committed,"
        if sink.kind == FileSink.__name__:
            if not has_manifest(files, sink.target, short_id(identity, sink.key), begun):
                continue
            has = f"has written files of batch {begun}, which was not committed,"
        found.append(
            f"sink {sink.shown} {has} and {change.value}: start the job with the program as it was, stop it "
            "with a savepoint and start from that with another one, or leave its batch as it is "
            "(--allow-non-restored-state)"
        )
    return tuple(found)

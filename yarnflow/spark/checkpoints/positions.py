"""At which committed batch a query stands, read from Spark's own logs.

Decides nothing; the logs are the truth, what a query last said of itself only adds names and
sizes to it.  Flink counterpart: the statistics of a ``CompletedCheckpoint``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

from pyspark.sql import SparkSession

from yarnflow.core.checkpoint.messages import QueryPosition, SourceProgress
from yarnflow.core.checkpoint.query_files import COMMITS, OFFSETS
from yarnflow.spark.checkpoints.log_entries import NO_OFFSET
from yarnflow.spark.hadoop_files import HadoopFiles
from yarnflow.spark.progress.events import parse_operators, parse_sources
from yarnflow.spark.state.files import numbered
from yarnflow.spark.translate.windows import END_OF_TIME_MS

#: the watermark of a drained query.  A bounded one that has read all its input comes as far as the
#: sentinel, which is before it, so a drain cannot be mistaken for an end
DRAINED_MS: Final = END_OF_TIME_MS + 1
#: in Spark's description of a batch
_PLANNED_MS: Final = "batchTimestampMs"


def committed_batch(files: HadoopFiles, directory: str) -> int:
    """The last batch Spark committed; -1 = none."""
    return max(numbered(entry.name for entry in files.entries(f"{directory}/{COMMITS}")), default=-1)


def planned_batch(files: HadoopFiles, directory: str) -> int:
    """The last batch whose input Spark has fixed; -1 = none."""
    return max(numbered(entry.name for entry in files.entries(f"{directory}/{OFFSETS}")), default=-1)


def planned_ms(files: HadoopFiles, directory: str, batch_id: int) -> int:
    """When Spark fixed a batch's input, ms since the epoch; it stays when the batch is done again."""
    _, metadata, *_ = files.read(f"{directory}/{OFFSETS}/{batch_id}").decode().splitlines()
    return int(json.loads(metadata)[_PLANNED_MS])


def read_position(
    files: HadoopFiles, name: str, directory: str, batch_id: int, progress_json: str = ""
) -> QueryPosition:
    """A query as of a committed batch.

    Parameters
    ----------
    progress_json : str
        What the query last said of itself, if it said anything yet.
    """
    event: dict[str, Any] = json.loads(progress_json) if progress_json else {}
    sources = parse_sources(event)
    position = QueryPosition(name, batch_id, directory, operators=parse_operators(event))
    if batch_id < 0:
        return position
    commit = f"{directory}/{COMMITS}/{batch_id}"
    watermark_ms = int(_entry(files, commit)[1].get("nextBatchWatermarkMs", -1))
    header, _, *offsets = files.read(f"{directory}/{OFFSETS}/{batch_id}").decode().splitlines()
    if header == "v1" and event.get("batchId") != batch_id:
        # of an earlier batch, or of none
        known = [source.description for source in sources] or [""] * len(offsets)
        sources = tuple(
            SourceProgress(description, end_offset="" if offset == NO_OFFSET else offset)
            for description, offset in zip(known, offsets, strict=False)
        )
    return replace(
        position,
        committed_ms=files.modified_ms(commit),
        # every watermark begins at the epoch, which means that there is none yet
        watermark_ms=watermark_ms if watermark_ms > 0 else -1,
        sources=sources,
    )


def positions_in_logs(
    spark: SparkSession, directory_of: Callable[[str, str], str]
) -> Callable[[str, str], QueryPosition | None]:
    """Tells where queries are that have nothing to do: Spark's id of one, its name → position.

    Parameters
    ----------
    directory_of : callable
        The same → directory; empty = not known, and so is the position.
    """
    files = HadoopFiles(spark)

    def position_of(query_id: str, name: str) -> QueryPosition | None:
        directory = directory_of(query_id, name)
        if not directory:
            return None
        return read_position(files, name, directory, committed_batch(files, directory))

    return position_of


def is_drained(files: HadoopFiles, directory: str) -> bool:
    """Whether a batch of :func:`plan_final_batch` is the last that was planned or committed."""
    planned, committed = planned_batch(files, directory), committed_batch(files, directory)
    found = set()
    if planned >= 0:
        found.add(_planned_watermark(files, f"{directory}/{OFFSETS}/{planned}"))
    if committed >= 0:
        found.add(_entry(files, f"{directory}/{COMMITS}/{committed}")[1].get("nextBatchWatermarkMs"))
    return DRAINED_MS in found


def plans_drain(files: HadoopFiles, entry: str) -> bool:
    """Whether an entry of the log of offsets is a batch of :func:`plan_final_batch`."""
    return _planned_watermark(files, entry) == DRAINED_MS


def _planned_watermark(files: HadoopFiles, entry: str) -> object:
    described = files.read(entry).decode().splitlines()[1:2]
    return json.loads("".join(described) or "{}").get("batchWatermarkMs")


def plan_final_batch(files: HadoopFiles, directory: str, committed: int) -> int:
    """Plan a batch without input whose watermark is beyond every event, so that all windows fire.

    It replaces the batch Spark has planned, if it has: what that would have read is read by the
    batch after it.  Spark does a planned batch as it finds it when the query is started again.

    Returns
    -------
    int
        Its number.
    """
    header, metadata, *offsets = files.read(f"{directory}/{OFFSETS}/{committed}").decode().splitlines()
    described = json.loads(metadata)
    described["batchWatermarkMs"] = DRAINED_MS
    write_log(files, f"{directory}/{OFFSETS}", committed + 1, (header, json.dumps(described), *offsets))
    return committed + 1


def plan_end_batch(
    files: HadoopFiles, directory: str, committed: int, end: str, new: bool, now_ms: int
) -> int:
    """Plan a batch that reads nothing but a file of rows that tell the end, as :func:`plan_final_batch` does.

    Parameters
    ----------
    end : str
        The file; the last of the query's sources watches its directory.
    new : bool
        The query has not had that source so far.
    now_ms : int
        Time of the batch.

    Returns
    -------
    int
        The batch's number.
    """
    header, metadata, *offsets = files.read(f"{directory}/{OFFSETS}/{committed}").decode().splitlines()
    before = [*offsets, NO_OFFSET] if new else offsets
    after = list(before)
    if after[-1] == NO_OFFSET:
        entry = {"path": spark_path(files, end), "timestamp": files.modified_ms(end), "batchId": 0}
        write_log(files, f"{directory}/sources/{len(after) - 1}", 0, ("v1", json.dumps(entry)))
        after[-1] = json.dumps({"logOffset": 0})
    described = {**json.loads(metadata), "batchWatermarkMs": DRAINED_MS, _PLANNED_MS: now_ms}
    # first what says that nobody goes on from here
    write_log(files, f"{directory}/{OFFSETS}", committed + 1, (header, json.dumps(described), *after))
    write_log(files, f"{directory}/{OFFSETS}", committed, (header, metadata, *before))
    return committed + 1


def spark_path(files: HadoopFiles, path: str) -> str:
    """A path as Spark writes it into the logs of file sources."""
    uri = str(files.path(files.qualified(path)).toUri().toString())
    return uri.replace("file:/", "file:///", 1) if uri.startswith("file:/") and uri[6:7] != "/" else uri


def write_log(files: HadoopFiles, log: str, number: int, lines: Iterable[str]) -> None:
    """Write an entry of one of Spark's logs, in place of the one that has the number."""
    # local file systems: the checksum of what stood there before
    files.delete(f"{log}/.{number}.crc")
    files.write(f"{log}/{number}", "\n".join(lines).encode())


def _entry(files: HadoopFiles, path: str) -> tuple[str, dict[str, Any]]:
    """A log entry: the version in its first line, then JSON."""
    header, _, text = files.read(path).decode().partition("\n")
    return header, json.loads(text or "{}")

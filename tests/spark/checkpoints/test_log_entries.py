"""Logs of offsets for queries with other sources."""

from __future__ import annotations

import json
from typing import Final

import pytest

from yarnflow.errors import StateIncompatible
from yarnflow.operators.task.state_layout import LastSource
from yarnflow.spark.checkpoints.log_entries import (
    end_is_read,
    state_settings,
    with_last_source,
    without_state_ids,
)

OF_PROGRAM, TICKS, END = LastSource.OF_PROGRAM, LastSource.TICKS, LastSource.END
FILES: Final = '{"logOffset":3}'
IDS: Final = {"stateUniqueIds": {"0": [["a"]]}}


def entry(*offsets: str) -> str:
    return "\n".join(("v1", json.dumps({"batchWatermarkMs": 7, "conf": {"a": "1", "b": "2"}}), *offsets))


@pytest.mark.parametrize(
    ("before", "found", "after", "fitting", "gone"),
    [
        (OF_PROGRAM, [FILES], OF_PROGRAM, [FILES], -1),
        (OF_PROGRAM, [FILES], TICKS, [FILES, "-"], -1),
        (OF_PROGRAM, [FILES], END, [FILES, "-"], -1),
        (TICKS, [FILES, "8"], OF_PROGRAM, [FILES], 1),
        (TICKS, [FILES, "8"], TICKS, [FILES, "8"], -1),
        (TICKS, [FILES, "8"], END, [FILES, "-"], 1),
        (END, [FILES, FILES, "-"], OF_PROGRAM, [FILES, FILES], 2),
        (END, [FILES, "-"], TICKS, [FILES, "-"], 1),
        (END, [FILES, FILES], END, [FILES, FILES], -1),
    ],
)
def test_the_last_source_is_replaced(
    before: LastSource, found: list[str], after: LastSource, fitting: list[str], gone: int
) -> None:
    content, number = with_last_source(entry(*found), {"b": "3"}, before, after)
    header, metadata, *offsets = content.splitlines()
    assert (header, offsets, number) == ("v1", fitting, gone)
    assert json.loads(metadata) == {"batchWatermarkMs": 7, "conf": {"a": "1", "b": "3"}}


def test_an_end_that_was_read_has_an_offset() -> None:
    assert end_is_read(entry(FILES, FILES)) and not end_is_read(entry(FILES, "-"))


@pytest.mark.parametrize(
    ("header", "found", "after", "left"),
    [
        ("v1", {"nextBatchWatermarkMs": 5}, "v1", {"nextBatchWatermarkMs": 5}),
        # in this version ids must be there
        ("v2", {"nextBatchWatermarkMs": 5, **IDS}, "v1", {"nextBatchWatermarkMs": 5}),
        ("v3", {**IDS, "sinkMetadataMap": {}}, "v3", {"sinkMetadataMap": {}}),
    ],
)
def test_ids_of_state_that_is_there_no_more_are_forgotten(
    header: str, found: dict[str, object], after: str, left: dict[str, object]
) -> None:
    content = without_state_ids(f"{header}\n{json.dumps(found)}")
    version, _, text = content.partition("\n")
    assert (version, json.loads(text)) == (after, left)
    assert without_state_ids("v1").partition("\n")[2] == "{}"


def test_settings_of_the_query_stay_as_they_were_recorded() -> None:
    of_state = {
        "spark.sql.streaming.stateStore.providerClass": "RocksDB",
        "spark.sql.shuffle.partitions": "3",
    }
    of_query = {"spark.sql.streaming.multipleWatermarkPolicy": "max"}
    assert state_settings({**of_query, **of_state}) == of_state


def test_offsets_by_name_are_not_taken_for_offsets_in_order() -> None:
    named = entry(f"0:{FILES}", "1:-").replace("v1", "v2", 1)
    message = "is of version v2, and only that of version v1 can be fitted"
    with pytest.raises(StateIncompatible, match=message):
        with_last_source(named, {}, OF_PROGRAM, TICKS)
    with pytest.raises(StateIncompatible, match=message):
        end_is_read(named)

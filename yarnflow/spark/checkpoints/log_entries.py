"""Entries of Spark's logs of offsets and commits rewritten for a query with other sources or other state.

Pure: text in, text out.  An entry is a line with the version of its form, one of JSON, and, for offsets, one
line for each source, in the order of the query's plan.  In commits a newer version of the form has ids of
the state's files beside the watermark.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from yarnflow.errors import StateIncompatible
from yarnflow.operators.task.state_layout import LastSource

#: what Spark writes for a source without an offset yet
NO_OFFSET: Final = "-"
#: the version of offsets in the order of the sources; with ``offsetLog.formatVersion`` 2 sources have names
_IN_ORDER: Final = "v1"
_STATE_STORE: Final = "spark.sql.streaming.stateStore."
_PARTITIONS: Final = "spark.sql.shuffle.partitions"


def state_settings(conf: Mapping[str, str]) -> dict[str, str]:
    """Of recorded settings those that say how state was written; others are the query's own."""
    return {k: value for k, value in conf.items() if k.startswith(_STATE_STORE) or k == _PARTITIONS}


def with_last_source(
    content: str, conf: Mapping[str, str], before: LastSource, after: LastSource
) -> tuple[str, int]:
    """An entry of the log of offsets for a query with another last source.

    Parameters
    ----------
    content : str
    conf : mapping
        Recorded settings that have other values.
    before, after : LastSource

    Returns
    -------
    str
    int
        Number of the source that the query has no more, or has now another one in place of; -1 = none.

    Raises
    ------
    StateIncompatible
        The entry is of another version.
    """
    header, metadata, *offsets = _in_order(content)
    described: dict[str, Any] = json.loads(metadata)
    described["conf"] = {**described.get("conf", {}), **conf}
    gone = -1
    if before is not after:
        if before is not LastSource.OF_PROGRAM:
            offsets.pop()
            gone = len(offsets)
        if after is not LastSource.OF_PROGRAM:
            offsets.append(NO_OFFSET)
    return "\n".join((header, json.dumps(described), *offsets)), gone


def end_is_read(content: str) -> bool:
    """Whether an entry says that the query has read the end of its input, where that is its last source.

    Raises
    ------
    StateIncompatible
        The entry is of another version.
    """
    return _in_order(content)[-1] != NO_OFFSET


def _in_order(content: str) -> list[str]:
    lines = content.splitlines()
    if lines[0] != _IN_ORDER:
        raise StateIncompatible(
            f"the log of offsets is of version {lines[0]}, and only that of version {_IN_ORDER} can be "
            "fitted to other operators: undo the change of the program's operators, or start without state "
            "(--restore none)"
        )
    return lines


def without_state_ids(content: str) -> str:
    """An entry of the log of commits for state whose files are called by their version alone.

    Spark writes the entries after it as it finds the last one, so it keeps to such names.
    """
    header, _, text = content.partition("\n")
    described: dict[str, Any] = json.loads(text or "{}")
    described.pop("stateUniqueIds", None)
    # the second version has nothing else that the first has not
    return "\n".join(("v1" if header == "v2" else header, json.dumps(described)))

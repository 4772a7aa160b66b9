"""Entries of Spark's logs of offsets and commits rewritten for a query with other sources or other state.

Pure: text in, text out.  An entry is a line with the version of its form, one of JSON, and, for offsets, one
line for each source, in the order of the query's plan.  In commits a newer version of the form has ids of
the state's files beside the watermark.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from yarnflow.operators.task.state_layout import LastSource

#: what Spark writes for a source without an offset yet
NO_OFFSET: Final = "-"


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
    """
    header, metadata, *offsets = content.splitlines()
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
    """Whether an entry says that the query has read the end of its input, where that is its last source."""
    return content.splitlines()[-1] != NO_OFFSET


def without_state_ids(content: str) -> str:
    """An entry of the log of commits for state whose files are called by their version alone.

    Spark writes the entries after it as it finds the last one, so it keeps to such names.
    """
    header, _, text = content.partition("\n")
    described: dict[str, Any] = json.loads(text or "{}")
    described.pop("stateUniqueIds", None)
    # the second version has nothing else that the first has not
    return "\n".join(("v1" if header == "v2" else header, json.dumps(described)))

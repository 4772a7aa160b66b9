"""What is in a query's directory: names that Spark gives, and those that a job adds.

Whoever asks how far a query is, in the driver or in the JobManager, reads them here.
"""

from __future__ import annotations

from typing import Final

#: Spark's log of the micro-batches whose input is fixed: a file for each, named after its number
OFFSETS: Final = "offsets"
#: Spark's log of the micro-batches that are committed, likewise
COMMITS: Final = "commits"
#: a query without micro-batches leaves this file when its one batch, number 0, is written
DONE_FILE: Final = "done"
#: identity of the query's output in its sinks, where that is not the one Spark gave the query
SINK_IDENTITY_FILE: Final = "sink-identity"
#: number of the last batch that the sinks have wholly, where the query was brought back to one before it
WRITTEN_FILE: Final = "written"
#: damaged files that were moved aside
DAMAGED_DIRECTORY: Final = "damaged"


def query_directory(query: str) -> str:
    """``query-<name>``: where a query's files are, in a job's directory and in a savepoint."""
    return f"query-{query}"

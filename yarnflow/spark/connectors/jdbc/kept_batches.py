"""Arrow batches of a task that can be read once more from the beginning."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from typing import IO, Any, Final

import pyarrow as pa

#: above, they go to the worker's temporary directory
_IN_MEMORY_BYTES: Final = 16 * 1024 * 1024


class KeptBatches:
    """Batches of one schema, kept as they are read.

    Parameters
    ----------
    batches : iterable of RecordBatch
        Read once.
    """

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._rest = iter(batches)
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES)
        self._writer: Any = None
        self._complete = False

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """From the first one on."""
        if self._writer is None and not self._complete:
            yield from self._kept()
            return
        # the reading before has ended somewhere
        for _ in self._kept():
            pass
        if self._writer is None:
            return
        self._file.seek(0)
        yield from pa.ipc.open_stream(pa.PythonFile(self._file, mode="r"))

    def close(self) -> None:
        """Remove what was kept."""
        self._file.close()

    def _kept(self) -> Iterator[pa.RecordBatch]:
        """The rest, each kept before it is given."""
        for batch in self._rest:
            if self._writer is None:
                self._writer = pa.ipc.new_stream(pa.PythonFile(self._file, mode="w"), batch.schema)
            self._writer.write_batch(batch)
            yield batch
        if not self._complete:
            self._complete = True
            if self._writer is not None:
                self._writer.close()

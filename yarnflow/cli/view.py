"""What a user sees of a running job.

On a terminal a table that is drawn again and again; anywhere else plain lines in Flink's
wording, one per change.  All of it goes to standard error.  Shows what the JobManager reports
and works nothing out but times since the submit.  Flink counterpart: the client's log and the
dashboard's job page.
"""

from __future__ import annotations

import os
import secrets
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Protocol, TextIO

from yarnflow.client.cluster import NO_PAGE, Page
from yarnflow.core.ids import JobId
from yarnflow.core.messages import ClusterOverview, FailureInfo, JobDetails, QueryProgress
from yarnflow.core.states import JobStatus, RestartLevel

if TYPE_CHECKING:
    from rich.console import RenderableType

#: milestones in the order in which they usually come
MILESTONES: Final = (
    "SUBMITTED",
    "SLOTS",
    "DRIVER_STARTED",
    "DRIVER_REUSED",
    "JVM_UP",
    "CONTEXT_UP",
    "SESSION_UP",
    "EXECUTORS_UP",
    "QUERY_STARTED",
    "FIRST_BATCH",
)

_PUMP_ENDS_S: Final = 1.0
#: begins a mark in the drivers' output, which is no text
_MARK: Final = "\0"
_COLOURS: Final = {
    JobStatus.RUNNING: "green",
    JobStatus.FINISHED: "green",
    JobStatus.FAILING: "red",
    JobStatus.FAILED: "red",
    JobStatus.CANCELED: "yellow",
}


class View(Protocol):
    """A listener that also knows whether it owns the terminal."""

    @property
    def live(self) -> bool:
        """It draws on the terminal, so that nobody else may."""

    def submitted(
        self, job_id: JobId, name: str, attached_to_existing: bool, page: Page = NO_PAGE
    ) -> None: ...

    def begin(self, details: JobDetails) -> None:
        """A job that others have submitted, as it is now; what has happened to it is not shown."""

    def changed(self, details: JobDetails, overview: ClusterOverview | None) -> None: ...

    def note(self, text: str) -> None: ...

    def close(self) -> None:
        """Show the end; nothing is shown afterwards."""


def make_view(
    live: bool | None = None, refresh_ms: int = 500, verbose: bool = False, stream: TextIO | None = None
) -> View:
    """The view that suits the terminal (or the lack of one).

    Parameters
    ----------
    live : bool, optional
        Draw; default: when standard error is a terminal that can.
    verbose : bool
        Show the start-up times at the end.
    """
    out = stream or sys.stderr
    if live is None:
        live = out.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    return LiveView(out, refresh_ms, verbose) if live else PlainView(out, verbose)


class StateLines:
    """Turns details into lines, each state and failure once."""

    def __init__(self) -> None:
        self._status: dict[JobId, JobStatus] = {}
        self._seen: dict[JobId, set[JobStatus]] = {}
        self._failures: dict[JobId, int] = {}
        self._waiting: dict[JobId, str] = {}

    def begin(self, details: JobDetails) -> str:
        """How a job is now, in a line; what has happened to it is not shown later on."""
        job_id, status = details.overview.job_id, details.overview.status
        self._failures[job_id] = len(details.failures)
        self._seen[job_id] = set(_states_since(details, set()))
        self._status[job_id] = status
        self._waiting[job_id] = details.waiting_for
        waits = f" and waits for {details.waiting_for}" if details.waiting_for else ""
        return f"{_title(details)} is {status.value}{waits}."

    def lines(self, details: JobDetails) -> Iterator[str]:
        """What is new: failures, then states."""
        yield from self.failures(details)
        yield from self.states(details)

    def failures(self, details: JobDetails) -> Iterator[str]:
        """Failures that were not shown yet."""
        overview = details.overview
        title = _title(details)
        for failure in details.failures[self._failures.get(overview.job_id, 0) :]:
            if failure.recovered and failure.level is RestartLevel.MASTER:
                continue  # the job did not notice, and who waits is told of the new leader
            where = f" on {failure.location}" if failure.location else ""
            yield f"{title}: failure{where} ({failure.level.value}): {failure.error.message}"
        self._failures[overview.job_id] = len(details.failures)

    def states(self, details: JobDetails) -> Iterator[str]:
        """States that were not shown yet, and what the job waits for."""
        overview = details.overview
        title = _title(details)
        last = self._status.get(overview.job_id)
        seen = self._seen.setdefault(overview.job_id, set())
        if overview.status is last:
            # what it went through meanwhile is no news later on
            seen.update(_states_since(details, seen))
        for status in _states_since(details, seen) if overview.status is not last else ():
            if last is not None:
                yield f"{title} switched from state {last.value} to {status.value}."
            seen.add(status)
            last = status
        self._status[overview.job_id] = overview.status
        if details.waiting_for and details.waiting_for != self._waiting.get(overview.job_id):
            yield f"{title} waits for {details.waiting_for}."
        self._waiting[overview.job_id] = details.waiting_for


def _title(details: JobDetails) -> str:
    return f"Job {details.overview.name} ({details.overview.job_id})"


def _states_since(details: JobDetails, seen: set[JobStatus]) -> list[JobStatus]:
    """States entered that were not shown yet, though no poll has seen them; the present one last."""
    now = details.overview.status
    # times of first entry; equal times keep the order of the life cycle
    order = {status.value: index for index, status in enumerate(JobStatus)}
    times = details.timestamps_ms.items()
    entered = sorted((at_ms, order[name], name) for name, at_ms in times if name in order)
    missed = [JobStatus(name) for _, _, name in entered]
    return [*(status for status in missed if status is not now and status not in seen), now]


class PlainView:
    """Lines for logs and pipes."""

    def __init__(self, stream: TextIO, verbose: bool = False) -> None:
        self._stream = stream
        self._verbose = verbose
        self._states = StateLines()
        self._last: dict[JobId, JobDetails] = {}

    @property
    def live(self) -> bool:
        """It does not draw."""
        return False

    def submitted(self, job_id: JobId, name: str, attached_to_existing: bool, page: Page = NO_PAGE) -> None:
        for line in submitted_lines(job_id, name, attached_to_existing, shown_address(page, self._stream)):
            self.note(line)

    def begin(self, details: JobDetails) -> None:
        """A line."""
        self.note(self._states.begin(details))

    def changed(self, details: JobDetails, overview: ClusterOverview | None) -> None:
        """A line for each new state and failure."""
        self._last[details.overview.job_id] = details
        for line in self._states.lines(details):
            self.note(line)

    def note(self, text: str) -> None:
        print(text, file=self._stream, flush=True)

    def close(self) -> None:
        """Start-up times, if asked for."""
        if self._verbose:
            for details in self._last.values():
                for line in start_up_lines(details):
                    self.note(line)


class LiveView:
    """A table on the terminal; lines scroll above it."""

    def __init__(self, stream: TextIO, refresh_ms: int = 500, verbose: bool = False) -> None:
        # imported here: nobody else pays for it
        from rich.console import Console
        from rich.live import Live

        self._stream = stream
        self._verbose = verbose
        self._states = StateLines()
        self._last: dict[JobId, JobDetails] = {}
        self._overview: ClusterOverview | None = None
        self._lock = threading.Lock()
        self._console = Console(file=stream, highlight=False)
        self._live = Live(
            console=self._console,
            refresh_per_second=max(1.0, 1000 / max(refresh_ms, 100)),
            transient=False,
            get_renderable=self._render,
        )
        self._started = False
        self._closed = False

    @property
    def live(self) -> bool:
        """It draws."""
        return True

    def submitted(self, job_id: JobId, name: str, attached_to_existing: bool, page: Page = NO_PAGE) -> None:
        """A line; from now on there is something to draw."""
        for line in submitted_lines(job_id, name, attached_to_existing, shown_address(page, self._stream)):
            self.note(line)
        # not earlier: until then the program may use the terminal as it likes
        if not self._started and not self._closed:
            self._started = True
            self._live.start()

    def begin(self, details: JobDetails) -> None:
        """A line; there is nothing to draw yet."""
        self.note(self._states.begin(details))

    def changed(self, details: JobDetails, overview: ClusterOverview | None) -> None:
        """New content; states and failures scroll by as lines, too."""
        with self._lock:
            self._last[details.overview.job_id] = details
            self._overview = overview or self._overview
        for line in self._states.lines(details):
            self.note(line)

    def note(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)

    def close(self) -> None:
        """The last picture stays."""
        if self._started and not self._closed:
            self._live.stop()
        self._closed = True
        if self._verbose:
            for details in self._last.values():
                for line in start_up_lines(details):
                    self.note(line)

    def _render(self) -> RenderableType:
        from rich.console import Group

        with self._lock:
            jobs, overview = list(self._last.values()), self._overview
        return Group(*(part for details in jobs for part in render_job(details, overview)))


def render_job(details: JobDetails, overview: ClusterOverview | None) -> list[RenderableType]:
    """The picture of one job, for rich."""
    from rich.table import Table
    from rich.text import Text

    job = details.overview
    colour = _COLOURS.get(job.status, "cyan")
    head = Text.assemble((job.name, "bold"), f"  {job.job_id}  ", (job.status.value, colour))
    parts: list[RenderableType] = [head]
    facts = [f"slots {job.slots_allocated}/{job.slots_required}", f"restarts {details.restarts}"]
    if overview is not None:
        free = f"{overview.slots_available}/{overview.slots_total}"
        facts.insert(0, f"TaskManagers {overview.task_managers}, free slots {free}")
    reached = [name for name in MILESTONES if name in details.milestones_ms]
    if reached and job.status is not JobStatus.RUNNING and not job.status.terminal:
        facts.append(f"reached {reached[-1]}")
    if details.waiting_for:
        facts.append(f"waits for {details.waiting_for}")
    parts.append(Text("  " + "   ".join(facts)))
    if details.stop is not None:
        parts.append(Text(f"  stopped with {details.stop.savepoint or 'a savepoint that was not recorded'}"))
    if details.queries:
        table = Table(box=None, pad_edge=True, header_style="dim")
        for name in ("query", "records in/s", "out/s", "in", "out", "batch", "watermark"):
            table.add_column(name, justify="left" if name == "query" else "right")
        for query in details.queries:
            table.add_row(*query_cells(query))
        parts.append(table)
    if details.failures:
        parts.append(Text("  last failure: " + failure_text(details.failures[-1]), style="red"))
    return parts


def query_cells(query: QueryProgress) -> tuple[str, ...]:
    """Cells of one query: name, rates, totals, batch, watermark."""
    batch_s = query.batch_duration_ms / 1000
    out_rate = f"{query.output_rows / batch_s:,.0f}" if query.output_rows >= 0 and batch_s > 0 else "-"
    return (
        query.query,
        f"{query.input_rows_per_second:,.0f}",
        out_rate,
        f"{query.total_input_rows:,}",
        f"{query.total_output_rows:,}" if query.output_rows >= 0 or query.total_output_rows else "-",
        f"{query.batch_id} ({batch_s:.1f} s)" if query.batch_id >= 0 else "-",
        time_text(query.watermark_ms),
    )


def failure_text(failure: FailureInfo) -> str:
    """One line."""
    where = f"{failure.location}: " if failure.location else ""
    return f"{where}{failure.error.message} ({'recovered' if failure.recovered else failure.level.value})"


def time_text(at_ms: int) -> str:
    """Event time in UTC, as Spark shows watermarks; ``-`` for none."""
    if at_ms < 0:
        return "-"
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError):
        return "end of input"


def shown_address(page: Page, stream: TextIO) -> str:
    """Return what a stream shows of a page: a link that lets a browser in is for terminals alone."""
    return page.link if stream.isatty() else page.address


def submitted_lines(job_id: JobId, name: str, attached_to_existing: bool, page: str) -> list[str]:
    """Flink's line, with the name; and where the job can be watched."""
    line = f"Job {name} has been submitted with JobID {job_id}."
    if attached_to_existing:
        line = f"Job {name} has been submitted before; attached to the live job with JobID {job_id}."
    return [line, f"Dashboard: {page}"] if page else [line]


def start_up_lines(details: JobDetails) -> list[str]:
    """When the start reached what, in seconds after the submit."""
    times = details.milestones_ms
    if not times:
        return []
    start_ms = times.get("SUBMITTED", min(times.values()))
    ordered = sorted(times.items(), key=lambda entry: entry[1])
    return [
        f"Start-up of job {details.overview.name}:",
        *(f"  {(at_ms - start_ms) / 1000:7.2f} s  {name}" for name, at_ms in ordered),
    ]


class OutputPump:
    """Carries what drivers print to standard output through this process.

    Needed while a view draws on the same terminal: written there by the drivers themselves, the
    program's output and the picture would destroy each other.  Needed as well where standard output
    is what ``sys.stdout`` is at the time, as in tests and notebooks.
    """

    def __init__(self) -> None:
        self._read_fd, self.write_fd = os.pipe2(os.O_CLOEXEC)
        self._marks: dict[str, threading.Event] = {}
        #: its number may be that of another file by now
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="driver-output", daemon=True)
        self._thread.start()

    def drain(self, timeout_s: float = 5.0) -> None:
        """Wait until all that was printed before this call stands on standard output."""
        mark, passed = secrets.token_hex(16), threading.Event()
        self._marks[mark] = passed
        try:
            # behind what the drivers have written: the pipe keeps the order
            os.write(self.write_fd, f"{_MARK}{mark}\n".encode())
        except BrokenPipeError:
            return  # whoever read standard output has gone
        passed.wait(timeout_s)

    def close(self) -> None:
        """Write what is left; the drivers have ended.  Idempotent."""
        if self._closed:
            return
        self._closed = True
        # a forked copy of this process may hold the other end of the pipe open
        self.drain()
        os.close(self.write_fd)
        self._thread.join(_PUMP_ENDS_S)

    def _run(self) -> None:
        with os.fdopen(self._read_fd, "r", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                # the last line of a driver may have no end
                text, found, mark = line.rpartition(_MARK)
                passed = self._marks.pop(mark.rstrip("\n"), None) if found else None
                try:
                    sys.stdout.write(line if passed is None else text)
                    sys.stdout.flush()
                except ValueError:
                    pass  # closed by the program, which may put another one there
                if passed is not None:
                    passed.set()

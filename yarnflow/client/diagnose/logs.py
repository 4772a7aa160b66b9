"""Log files of an application's containers: of live ones from their nodes, of ended ones from HDFS.

Decides where logs are looked for, which files are shown and what is said when there are none.
YARN keeps a container's files on its node while the application runs and collects them on HDFS
after it has ended, if log aggregation is on; that takes some seconds.  Flink counterpart: none;
its users run ``yarn logs``.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final, Protocol

from yarnflow.client.diagnose.log_files import CollectedFiles, Place, being_rotated, shown_files
from yarnflow.client.yarn.aggregated_logs import CollectedLine, collected_lines
from yarnflow.client.yarn.applications import connect_application, end_text, mode_tag
from yarnflow.client.yarn.services import YarnServices, libraries
from yarnflow.core.ids import JobId, is_job_id
from yarnflow.core.yarn import Application, DeploymentMode, YarnContainer
from yarnflow.errors import (
    ApplicationNotFound,
    FileMissing,
    InvalidOption,
    JobNotFound,
    StorageError,
    YarnError,
    YarnflowError,
    YarnUnavailable,
)
from yarnflow.staging.layout import STANDBY_TAG, job_tag
from yarnflow.staging.masters import LIVE_STATES

#: after an application's end, its logs are being collected for about this long
AGGREGATION_S: Final = 60.0
POLL_S: Final = 1.0
#: guess for the first look at the end of a file
_LINE_BYTES: Final = 200

_APPLICATION_ID: Final = re.compile(r"application_\d+_\d+")
#: what containers are named after
_KINDS: Final = ("master", "driver", "taskmanager")
#: which only the container of skein's ApplicationMaster has; its number need not be 1
_MASTER_FILES: Final = frozenset({"application.master.log", "application.driver.log"})


Note = Callable[[str], None]


class FileOfLogs(Protocol):
    """A file as :class:`LiveLogs` lists it."""

    @property
    def name(self) -> str: ...

    @property
    def length_bytes(self) -> int: ...


class LiveLogs(Protocol):
    """What :class:`yarnflow.yarn.web.container_logs.ContainerLogs` does."""

    def files(self, node: str, container_id: str) -> Sequence[FileOfLogs]: ...

    def read(self, node: str, container_id: str, name: str, offset_bytes: int = 0) -> bytes: ...


@dataclass(frozen=True, slots=True)
class LogPart:
    """A piece of one log file, in whole lines where there are any."""

    container_id: str
    file: str
    text: str
    #: empty once the application has ended
    node: str = ""


def container_number(container_id: str) -> int:
    """The last part of a container's id."""
    digits = container_id.rpartition("_")[2]
    return int(digits) if digits.isdigit() else -1


def check_selection(selection: str) -> None:
    """Raises InvalidOption for what cannot name a container."""
    words = ("", *_KINDS)
    if selection not in words and not selection.isdigit() and not selection.startswith("container_"):
        raise InvalidOption(
            f"--container {selection}: expected master, driver, taskmanager (all of that kind), a "
            "container's id or its last number"
        )


def selected(selection: str, container_id: str, files: Collection[str]) -> bool:
    """Whether a container with these files is meant by ``--container``."""
    if selection in ("", container_id):
        return True
    if selection in _KINDS:
        return _kind(files) == selection
    return selection.isdigit() and container_number(container_id) == int(selection)


def _kind(files: Collection[str]) -> str:
    """What runs in the container that has these files."""
    if not _MASTER_FILES.isdisjoint(files):
        return "master"
    return "driver" if any(name.startswith("driver") for name in files) else "taskmanager"


def may_be_meant(selection: str, container_id: str) -> bool:
    """Whether a container is selected by ``--container`` whatever files it has, or its files will tell."""
    return selection in _KINDS or selected(selection, container_id, ())


def last_lines(text: str, count: int | None) -> str:
    """The last lines of a text; all of it for None."""
    if count is None:
        return text
    return "".join(text.splitlines(keepends=True)[-count:]) if count > 0 else ""


def find_logged_application(services: YarnServices, name: str) -> Application:
    """The application a job or an application id means, running or ended.

    Raises
    ------
    ApplicationNotFound
        YARN does not know it (any more).
    JobNotFound
        No application has this job.
    InvalidOption
        Neither kind of id.
    """
    if _APPLICATION_ID.fullmatch(name):
        return services.cluster.application(name)
    if not is_job_id(name):
        raise InvalidOption(
            f"{name} is neither the id of an application (application_…) nor of a job (32 hexadecimal digits)"
        )
    found = services.cluster.applications(tag=job_tag(name), user=services.user)
    if found:
        # of several masters one that lives, and rather the first than a standby
        return max(
            found, key=lambda app: (not app.state.ended, STANDBY_TAG not in app.tags, app.started_ms)
        )
    sessions = services.cluster.applications(
        tag=mode_tag(DeploymentMode.SESSION), user=services.user, states=LIVE_STATES
    )
    for session in sessions:
        if _has_job(services, session, JobId(name)):
            return session
    raise JobNotFound(
        f"no application of user {services.user} on YARN has job {name}; the logs of a session's jobs are "
        "those of the session: yarnflow logs APPLICATION (ids: scripts/yarn-list --all)"
    )


def _has_job(services: YarnServices, session: Application, job_id: JobId) -> bool:
    cluster = connect_application(services, session)
    try:
        cluster.gateway().job_details(job_id)
        return True
    except YarnflowError:
        return False
    finally:
        cluster.close()


@dataclass(slots=True)
class ApplicationLogs:
    """Reads the logs of one application.

    Parameters
    ----------
    services : YarnServices
    application : Application
    selection : str
        ``--container``; empty = all containers.
    lines : int, optional
        Only the last lines of each file.
    note : callable
        Told where logs are looked for and what is missing.
    live : LiveLogs, optional
        By default, what the NodeManagers tell.
    collected : callable
        Application id, user, environment → lines of the logs on HDFS.
    sleep : callable
        Seconds; replaced in tests.
    """

    services: YarnServices
    application: Application
    selection: str = ""
    lines: int | None = None
    note: Note = lambda text: None
    live: LiveLogs | None = None
    collected: Callable[[str, str, Mapping[str, str]], Iterator[CollectedLine]] = collected_lines
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.time
    #: (container, file) → bytes that were shown
    _shown: dict[tuple[str, Place], int] = field(default_factory=dict)
    _failed_nodes: set[str] = field(default_factory=set)
    _seen_containers: bool = False
    _following: bool = False
    #: why there may be more logs than were read
    _cut_short: YarnUnavailable | None = None

    def read(self) -> Iterator[LogPart]:
        """What there is now.

        Raises
        ------
        YarnError
            There are no logs to be had; the message says where they were looked for and what to do.
        """
        if self.application.state.ended:
            yield from self._aggregated()
            return
        found = False
        for part in self._live_parts(self.lines):
            found = True
            yield part
        if not found and not self._seen_containers:
            raise self._no_container()

    def follow(self) -> Iterator[LogPart]:
        """What there is, then everything that is added until the application has ended."""
        lines = self.lines
        self._following = True
        while not self.application.state.ended:
            yield from self._live_parts(lines)
            self.sleep(POLL_S)
            lines = None
            self.application = self.services.cluster.application(self.application.application_id)
        self.note(f"application {self.application.application_id} has ended: {end_text(self.application)}")
        try:
            yield from self._aggregated()
        except YarnError as error:
            # all but the last moment was shown
            if not self._shown:
                raise
            self.note(f"the last lines may be missing: {error}")

    # --- live containers --------------------------------------------------------

    def _live_parts(self, lines: int | None) -> Iterator[LogPart]:
        live = self._live_logs()
        containers = self.services.cluster.containers(self.application.application_id)
        ordered = sorted(containers, key=lambda container: container.container_id)
        starting = False
        for container in ordered:
            try:
                files = live.files(container.node, container.container_id)
                if not files:
                    starting |= may_be_meant(self.selection, container.container_id)
                    continue
                if not selected(self.selection, container.container_id, {file.name for file in files}):
                    continue
                self._seen_containers = True
                by_name = {file.name: file for file in files}
                # while it is followed, the next look will find in its place what is being rotated
                moving = being_rotated(by_name) if self._following else ()
                places = {name: at for name, at in shown_files(by_name).items() if at[0] not in moving}
                lengths = {at: by_name[name].length_bytes for name, at in places.items()}
                self._note_rotated(container.container_id, lengths)
                for name, place in places.items():
                    try:
                        text = self._new_text(live, container, by_name[name], place, lines)
                    except FileMissing as error:
                        # since they were listed, its process's logs were removed, or the container has ended
                        self.note(str(error))
                        continue
                    if text:
                        yield LogPart(container.container_id, name, text, container.node)
            except YarnError as error:
                self._seen_containers = True
                # one node that does not answer must not hide the others
                if container.node not in self._failed_nodes:
                    self._failed_nodes.add(container.node)
                    self.note(f"no logs of {container.container_id}: {error}")
        # while it is followed, a container may still come
        if ordered and not self._seen_containers and not self._following and not starting:
            raise YarnError(
                f"application {self.application.application_id} has no container {self.selection} now; "
                f"it has: {', '.join(container.container_id for container in ordered)}"
            )

    def _note_rotated(self, container_id: str, lengths: Mapping[Place, int]) -> None:
        """What was shown of a file that has become shorter is in the one before it now."""
        for place, length in lengths.items():
            file, number = place
            shown = self._shown.get((container_id, place), 0)
            if number > 0 or shown <= length:
                continue
            moved: int | None = shown
            self._shown[container_id, place] = 0
            # each of them has got the next number
            while moved is not None:
                number += 1
                key = (container_id, (file, number))
                before = self._shown.get(key)
                self._shown[key] = moved
                moved = before

    def _new_text(
        self, live: LiveLogs, container: YarnContainer, file: FileOfLogs, place: Place, lines: int | None
    ) -> str:
        key = (container.container_id, place)
        first = key not in self._shown
        if first and lines is not None:
            offset, content = self._tail(live, container, file, lines)
        else:
            offset = self._shown.get(key, 0)
            if file.length_bytes == offset:
                return ""
            content = live.read(container.node, container.container_id, file.name, offset)
        # the rest of the last line comes with the next look
        whole = content.rfind(b"\n") + 1 if self._following else len(content)
        self._shown[key] = offset + whole
        return last_lines(content[:whole].decode("utf-8", "replace"), lines if first else None)

    def _tail(
        self, live: LiveLogs, container: YarnContainer, file: FileOfLogs, lines: int
    ) -> tuple[int, bytes]:
        """From where, and what: enough of a file's end for that many lines."""
        size = max(lines, 1) * _LINE_BYTES
        while True:
            offset = max(0, file.length_bytes - size)
            content = live.read(container.node, container.container_id, file.name, offset)
            if offset == 0 or content.count(b"\n") > lines:
                return offset, content
            size *= 4

    def _live_logs(self) -> LiveLogs:
        if self.live is None:
            with libraries():
                from yarnflow.yarn.web.container_logs import ContainerLogs

                self.live = ContainerLogs(self.services.user)
        return self.live

    def _no_container(self) -> YarnError:
        application = self.application
        said = f": {' '.join(application.diagnostics.split())}" if application.diagnostics else ""
        which = f"container {self.selection}" if self.selection else "container"
        return YarnError(
            f"application {application.application_id} is {application.state.value} and has no {which} "
            f"with logs yet{said}; look again, or use --follow"
        )

    # --- ended applications -----------------------------------------------------

    def _aggregated(self) -> Iterator[LogPart]:
        found: list[str] = []
        meant = False
        # of a container, or what there is of it
        for container_id, lines in groupby(self._collected(), key=lambda line: line.container_id):
            found.append(container_id)
            with CollectedFiles() as files:
                for line in lines:
                    if may_be_meant(self.selection, container_id):
                        files.add(line.file, line.line)
                if selected(self.selection, container_id, files.lengths()):
                    meant = True
                    yield from self._rest_of(container_id, files)
        if self._cut_short is not None:
            raise self._cut_short
        if not meant:
            raise YarnError(
                f"application {self.application.application_id} has no logs of "
                f"{self.selection or 'containers'} on HDFS; it has: {', '.join(sorted(found)) or 'none'}"
            )

    def _rest_of(self, container_id: str, files: CollectedFiles) -> Iterator[LogPart]:
        """Of all files: what was not shown while they were followed; else their last lines."""
        sizes = files.lengths()
        places = shown_files(sizes)
        lengths = {place: sizes[name] for name, place in places.items()}
        # a file without a line is not here; one whose line ends were changed is shorter, but was not rotated
        current = {
            place: lengths.get(place, 0)
            for (container, place), shown in self._shown.items()
            if container == container_id and place[1] == 0 and lengths.get((place[0], 1), -1) >= shown
        }
        self._note_rotated(container_id, current)
        for name, place in places.items():
            shown = self._shown.get((container_id, place))
            lines = files.lines(name)
            if shown is None and self.lines is not None:
                lines = iter(deque(lines, maxlen=self.lines))
            position = 0
            for line in lines:
                position += len(line.encode("utf-8", "replace"))
                if position > (shown or 0):
                    yield LogPart(container_id, name, line)

    def _collected(self) -> Iterator[CollectedLine]:
        """Wait until YARN has collected the logs, then read them."""
        application = self.application
        user = application.user or self.services.user
        waited = False
        while self._is_collecting(user):
            if not waited:
                waited = True
                self.note("waiting for YARN to collect the logs on HDFS")
            self.sleep(POLL_S)
        found = False
        try:
            for line in self.collected(application.application_id, user, self.services.environ):
                found = True
                yield line
        except ApplicationNotFound as error:
            raise self._nothing_collected(user) from error
        except YarnUnavailable as error:
            if not found:
                raise
            # of the file it broke off in, the last lines are wanted, too
            self._cut_short = error

    def _is_collecting(self, user: str) -> bool:
        """Nodes are still writing, or have not begun: not worth a JVM to look."""
        if self.now() - self.application.finished_ms / 1000 > AGGREGATION_S:
            # what there is is shown, also where a node was lost while it wrote; and the command looks in
            # places that are not known here
            return False
        entries = [entry for path in self._directories(user) for entry in self._list(path)]
        if any(name.endswith(".tmp") for name in entries):
            return True
        try:
            # of one node all may be there before the next begins
            told = self.services.cluster.application(self.application.application_id).collecting_logs
        except YarnError:
            told = None
        return not entries if told is None else told

    def _list(self, path: str) -> list[str]:
        try:
            return [status.name for status in self.services.fs.list(path)]
        except StorageError:
            return []

    def _directories(self, user: str) -> list[str]:
        """Where YARN collects an application's logs: since 3.3 in buckets, before that in one directory."""
        conf = self.services.conf
        root = conf.get("yarn.nodemanager.remote-app-log-dir", "/tmp/logs").rstrip("/")
        root = re.sub(r"^[a-z]+://[^/]*", "", root)
        suffix = conf.get("yarn.nodemanager.remote-app-log-dir-suffix", "logs")
        application_id = self.application.application_id
        bucket = f"{int(application_id.rpartition('_')[2]) % 10_000:04d}"
        return [
            f"{root}/{user}/bucket-{suffix}-tfile/{bucket}/{application_id}",
            f"{root}/{user}/bucket-{suffix}-ifile/{bucket}/{application_id}",
            f"{root}/{user}/{suffix}-tfile/{application_id}",
            f"{root}/{user}/{suffix}/{application_id}",
        ]

    def _nothing_collected(self, user: str) -> YarnError:
        application = self.application
        if not application.name:
            return ApplicationNotFound(
                f"YARN does not know {application.application_id} (any more), and HDFS has no logs of it "
                f"(looked in {self._directories(user)[0]}); `scripts/yarn-list --all` shows those YARN knows"
            )
        conf = self.services.conf
        if conf.get("yarn.log-aggregation-enable", "false").strip().lower() != "true":
            node = f" (the master ran on {application.master_node})" if application.master_node else ""
            return YarnError(
                f"application {application.application_id} has ended and log aggregation is off "
                f"(yarn.log-aggregation-enable in {conf.directory / 'yarn-site.xml'}): its logs are on the "
                f"nodes{node}, below yarn.nodemanager.log-dirs, until yarn.nodemanager.log.retain-seconds "
                "are over; turn log aggregation on to have them here"
            )
        return YarnError(
            f"the logs of application {application.application_id} are not on HDFS "
            f"(looked in {self._directories(user)[0]} and where older versions keep them): YARN collects "
            "them within seconds after the end, so try again; if they stay away, see the NodeManagers' logs"
        )


def read_logs(
    services: YarnServices, applications: Sequence[Application], selection: str, lines: int | None, note: Note
) -> Iterator[LogPart]:
    """What there is now of all of them, one after the other; the parameters are :class:`ApplicationLogs`'.

    Raises
    ------
    YarnError
        None of them has any; what is missing of some is noted.
    """
    found, failures = False, []
    for application in applications:
        try:
            for part in ApplicationLogs(services, application, selection, lines, note).read():
                found = True
                yield part
        except YarnError as error:
            failures.append(error)
    if failures and not found:
        raise failures[0]
    for failure in failures:
        note(str(failure))


def known_application(services: YarnServices, name: str) -> Application:
    """As :func:`find_logged_application`; for one YARN has forgotten, what its id alone tells.

    Its logs may still be on HDFS.
    """
    from yarnflow.core.yarn import ApplicationState, FinalStatus

    try:
        return find_logged_application(services, name)
    except ApplicationNotFound:
        if not _APPLICATION_ID.fullmatch(name):
            raise
        return Application(
            name, "", services.user, "", ApplicationState.FINISHED, FinalStatus.UNDEFINED, finished_ms=0
        )

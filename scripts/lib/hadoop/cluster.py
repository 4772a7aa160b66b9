"""Starting and stopping a cluster as a whole, and single daemons of it."""

from __future__ import annotations

import contextlib
import re
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence

from hadoop import archive, daemons, probes, processes, settings
from hadoop.errors import ClusterError, DaemonFailed
from hadoop.layout import NODE_MANAGERS, RUNNING, STARTING, STOPPED, Layout, State
from hadoop.output import say

# a NodeManager ends its containers first
_GRACE_S = 10.0
_POLL_S = 0.1
_LOG_LINES = 25
# who has to register again with one that was restarted
_CLIENTS = {
    "namenode": ["datanode"],
    "resourcemanager": [f"nodemanager-{number}" for number in range(1, NODE_MANAGERS + 1)],
}


def start(layout: Layout, wanted: State, timeout_s: float, keep_logs: bool) -> None:
    """Bring a cluster up; returns when all of it works, or leaves nothing of it.

    Raises
    ------
    ClusterError
        The folder is not ours, a running cluster has lost daemons, or one did not become ready.
    """
    with layout.locked(create=True):
        if layout.is_foreign():
            raise ClusterError(f"{layout.folder} holds other files; name an empty folder or a new one")
        present = layout.load()
        if present is not None and present.phase == RUNNING:
            running = {process.daemon for process in processes.find(layout)}
            gone = [name for name in present.daemons if name not in running]
            if not gone:
                say(f"a cluster runs in {layout.folder} already")
                return
            if len(gone) < len(present.daemons):
                raise ClusterError(
                    f"the cluster in {layout.folder} has lost {', '.join(gone)}; "
                    "`scripts/hadoop restart` brings a daemon back, `scripts/hadoop stop` ends the rest"
                )
        try:
            _bring_up(layout, wanted, timeout_s)
        except BaseException as error:
            # ^C once more must not leave half of it behind
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            if isinstance(error, DaemonFailed):
                _show_log(layout, error.name)
            say("stopping what was started")
            _remove(layout, wanted, keep_logs)
            raise


def stop(layout: Layout, keep_logs: bool) -> None:
    """End all processes of the cluster and remove its folder, whatever state they are in."""
    with layout.locked(create=False) as exists:
        if exists and layout.is_foreign():
            raise ClusterError(f"{layout.folder} holds no cluster; nothing was touched")
        state = None
        if exists:
            # a damaged one keeps nobody from getting rid of the cluster
            with contextlib.suppress(ClusterError):
                state = layout.load()
        # in the middle of their start they can be deaf to SIGTERM, and have nothing yet to end in order
        running = processes.end_all(layout, 0.0 if state is None or state.phase == STARTING else _GRACE_S)
        if exists:
            _remove(layout, state, keep_logs)
        if not running and (state is None or state.phase == STOPPED):
            say(f"no cluster ran in {layout.folder}")
        else:
            say(f"stopped the cluster in {layout.folder}")


def restart(layout: Layout, name: str, timeout_s: float) -> None:
    """End a daemon if it runs, start it on the same ports, wait until it works."""
    with layout.locked(create=False):
        state = layout.running()
        processes.end(layout, name, _GRACE_S)
        _wait_for_ports(state, name)
        process = daemons.start(layout, state, name)
        running = {found.daemon for found in processes.find(layout) if not found.paused}
        clients = [client for client in _CLIENTS.get(name, ()) if client in running]
        try:
            _wait(state, {name: process}, [name, *clients], timeout_s)
        except DaemonFailed:
            _show_log(layout, name)
            raise


def _bring_up(layout: Layout, state: State, timeout_s: float) -> None:
    for last in (False, True):
        processes.end_all(layout, 0.0)
        layout.clear(keep_logs=False)
        state.choose_ports()
        layout.save(state)
        settings.write(layout, state)
        try:
            _start_all(layout, state, timeout_s)
            break
        except DaemonFailed as error:
            # someone else can take a port between our choice and the daemon's start
            if last or not _lost_a_port(layout, error.name):
                raise
            say("a port was taken meanwhile; once more with others")
    if archive.is_wanted(state):
        # for the daemons that are restarted, the client commands, and the next cluster
        state.archive = archive.make(layout, state)
        settings.write_clients(layout, state)
    state.phase = RUNNING
    layout.save(state)


def _start_all(layout: Layout, state: State, timeout_s: float) -> None:
    until = time.monotonic() + timeout_s
    list_classes = archive.is_wanted(state)
    formatting = daemons.start(layout, state, daemons.FORMAT, list_classes)
    started: dict[str, subprocess.Popen[bytes]] = {}
    for name in state.daemons:
        if name != "namenode":
            started[name] = daemons.start(layout, state, name, list_classes)
    while formatting.poll() is None and time.monotonic() < until:
        time.sleep(_POLL_S)
    if formatting.poll() != 0:
        raise DaemonFailed(daemons.FORMAT, "of HDFS failed")
    started["namenode"] = daemons.start(layout, state, "namenode", list_classes)
    _wait(state, started, state.daemons, until - time.monotonic())
    while (failure := probes.first_use(state)) is not None:
        # the first write loads much of both daemons: on a busy machine it takes its time
        if time.monotonic() > until:
            raise DaemonFailed("datanode", f"failed the test write: {failure}")
        time.sleep(_POLL_S)


def _wait(
    state: State, started: Mapping[str, subprocess.Popen[bytes]], names: Sequence[str], timeout_s: float
) -> None:
    """Until all of ``names`` are ready; ends as soon as one of ``started`` has ended."""
    until = time.monotonic() + timeout_s
    waiting = list(names)
    while waiting:
        for name, process in started.items():
            status = process.poll()
            if status is not None:
                raise DaemonFailed(name, f"ended with status {status}")
        name = waiting[0]
        lacking = probes.missing(state, name)
        if lacking is None:
            waiting.remove(name)
        elif time.monotonic() > until:
            raise DaemonFailed(name, f"was not ready after {timeout_s:.0f} s: it {lacking}")
        else:
            time.sleep(_POLL_S)


def _wait_for_ports(state: State, name: str) -> None:
    """A port stays taken for a moment after its process is gone, or for as long as a container holds it."""
    until = time.monotonic() + 10.0
    for port in state.ports[name].values():
        while not _is_free(port):
            if time.monotonic() > until:
                raise ClusterError(f"port {port} of {name} is taken by another process")
            time.sleep(_POLL_S)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # as the daemons do
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _remove(layout: Layout, state: State | None, keep_logs: bool) -> None:
    processes.end_all(layout, 0.0)
    keep_logs = keep_logs and state is not None and layout.logs.is_dir()
    layout.clear(keep_logs)
    if keep_logs and state is not None:
        state.phase = STOPPED
        layout.save(state)
        say(f"logs are kept in {layout.logs}")
    else:
        layout.folder.rmdir()


def _tail(layout: Layout, name: str) -> Sequence[str]:
    try:
        return layout.log_of(name).read_text(errors="replace").splitlines()[-_LOG_LINES:]
    except FileNotFoundError:
        return []


def _lost_a_port(layout: Layout, name: str) -> bool:
    return any(re.search("BindException|Address already in use", line) for line in _tail(layout, name))


def _show_log(layout: Layout, name: str) -> None:
    say(f"the end of {layout.log_of(name)}:")
    for line in _tail(layout, name):
        say(f"  {line}")

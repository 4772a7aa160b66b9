"""Main of the history server: ``yarnflow historyserver``.

One process that talks to no cluster: it reads archives from file systems and answers by HTTP.  Flink
counterpart: ``HistoryServer``.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from yarnflow import __version__
from yarnflow.config.configuration import Configuration
from yarnflow.config.options import cluster as cluster_options
from yarnflow.config.options import history as options
from yarnflow.config.options import rest as rest_options
from yarnflow.entrypoint.standalone.supervisor import Say, stop_event
from yarnflow.errors import ConfigError, PortUnavailable, ResourceError
from yarnflow.fs.file_systems import file_systems
from yarnflow.process.clock import SystemClock
from yarnflow.process.dirs import base_directory, open_cluster_directory, temporary_directory
from yarnflow.process.logs import log_settings, set_up_logging
from yarnflow.process.secret import read_private_file
from yarnflow.rest.access.hosts import AllowedHosts
from yarnflow.rest.framework.application import HandlerPool
from yarnflow.rest.framework.authentication import OneToken
from yarnflow.rest.framework.server import WebServer
from yarnflow.rest.history.fetcher import ArchiveFetcher, Retention
from yarnflow.rest.history.server import History, application
from yarnflow.rest.history.store import ArchiveStore
from yarnflow.rpc.listen import bind, bind_host

logger: Final = logging.getLogger(__name__)

_NAME: Final = "historyserver"
_LAST_COPY_S: Final = 5.0


def run_history_server(configuration: Configuration, say: Say) -> int:
    """Serve archives until told to stop (TERM or INT); returns the exit status of the command.

    Raises
    ------
    YarnflowError
        An option is wrong, or the port is not free.
    """
    stop = stop_event()
    get = configuration.get
    sources = archive_dirs(configuration)
    token = read_token(get(options.WEB_TOKEN_FILE))
    base = base_directory(temporary_directory(configuration))
    directory = open_cluster_directory(base / _NAME, get(cluster_options.LOG_DIR))
    set_up_logging(directory.logs / f"{_NAME}-{os.getpid()}.log", log_settings(configuration))
    copies = get(options.WEB_TMP_DIR)
    with _only_one(Path(copies).expanduser().absolute() if copies else base / _NAME) as place:
        store = ArchiveStore(place)
        retention = Retention(
            get(options.CLEAN_EXPIRED), get(options.RETAINED_JOBS), get(options.RETAINED_TTL_MS)
        )
        clock = SystemClock()
        fetcher = ArchiveFetcher(sources, file_systems(), store, retention, clock, stop.is_set)
        host = bind_host(get(options.WEB_ADDRESS), "localhost")
        try:
            listener = bind(host, str(get(options.WEB_PORT)))
        except PortUnavailable as error:
            raise PortUnavailable(
                f"the history server has no port: {error.message} (option historyserver.web.port)"
            ) from error
        history = History(
            store,
            __version__,
            get(options.WEB_REFRESH_MS),
            get(options.JOBMANAGER_LOG_URL),
            get(options.TASKMANAGER_LOG_URL),
        )
        pool = HandlerPool(get(rest_options.REST_THREADS))
        hosts = AllowedHosts((host, get(options.WEB_ADDRESS)), get(rest_options.REST_ALLOWED_HOSTS))
        server = WebServer(listener, application(history, OneToken(token), pool), hosts)
        server.start()
        interval_s = get(options.SOURCE_REFRESH_MS) / 1000
        arguments = (fetcher, stop, interval_s)
        thread = threading.Thread(target=_look, args=arguments, name="archives", daemon=True)
        thread.start()
        if not token and not host.startswith("127."):
            logger.warning("Whoever reaches %s may read: historyserver.web.token-file is not set.", host)
        logger.info("The history server shows archives in %s.", ", ".join(sources))
        address = f"http://{host}:{server.port}"
        say(f"History server serves at {address} (pid {os.getpid()}); logs: {directory.logs}")
        stop.wait()
        server.stop()
        pool.close()
        # an archive that is being copied; what is half copied is not there
        thread.join(_LAST_COPY_S)
        store.close()
    say("History server stopped.")
    return 0


def archive_dirs(configuration: Configuration) -> tuple[str, ...]:
    """Where archives are.

    Raises
    ------
    ConfigError
        Nobody has said it.
    """
    text = configuration.get(options.SOURCE_DIRS) or configuration.get(options.ARCHIVE_DIR)
    found = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not found:
        raise ConfigError(
            "the history server does not know where archives are: set historyserver.archive.fs.dir, such as "
            "-Dhistoryserver.archive.fs.dir=hdfs:///yarnflow/archives"
        )
    return found


def read_token(path: str) -> str:
    """What a request needs; empty = nothing.

    Raises
    ------
    ConfigError
        The file cannot be read, others can read it, or there is no token in it.
    FileMissing
        There is none.
    """
    if not path:
        return ""
    hint = "(option historyserver.web.token-file)"
    token = read_private_file(Path(path).expanduser(), "token file", hint).strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(f"{path} (option historyserver.web.token-file) must hold one token, on one line")
    return token


def _look(fetcher: ArchiveFetcher, stop: threading.Event, interval_s: float) -> None:
    while True:
        try:
            fetcher.refresh()
        except Exception:  # what is there already can still be shown
            if not stop.is_set():
                logger.exception("The archives could not be looked at")
        if stop.wait(interval_s):
            return


@contextmanager
def _only_one(directory: Path) -> Iterator[Path]:
    """Two history servers would take each other's copies away."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(directory / "historyserver.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(
            f"cannot use {directory}: {error.strerror} (option historyserver.web.tmpdir)"
        ) from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ResourceError(
                f"another history server uses {directory}; set another historyserver.web.tmpdir"
            ) from None
        yield directory
    finally:
        os.close(lock)

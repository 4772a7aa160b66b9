"""Submitting applications: skein's Java client.

Decides what is asked of YARN before the client's JVM has to be there, and what its errors mean.
A submit that does not come back leaves no application behind.  Flink counterpart: ``YarnClient`` as
``YarnClusterDescriptor`` uses it.
"""

from __future__ import annotations

import atexit
import contextlib
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from yarnflow.config.directories import cache_directory
from yarnflow.config.hadoop.conf import HadoopConf
from yarnflow.core.yarn import ApplicationSpec, YarnCluster
from yarnflow.errors import (
    QueueUnavailable,
    RequestTooLarge,
    StorageDenied,
    StorageUnavailable,
    YarnError,
    YarnflowError,
    YarnUnavailable,
)
from yarnflow.yarn.class_path import ClassPath, hadoop_class_path
from yarnflow.yarn.credentials import Credentials, new_credentials
from yarnflow.yarn.heartbeat import write_application_jar
from yarnflow.yarn.jvm import ClientJvm
from yarnflow.yarn.library import skein
from yarnflow.yarn.master_jar import SKEIN_JAR_NAME, skein_jar
from yarnflow.yarn.spec import skein_spec
from yarnflow.yarn.web.admission import check_application

_SUBMIT_TIMEOUT_S: Final = 60.0
#: the ResourceManager has answered by HTTP a moment ago
_IMPATIENCE: Final = {
    "yarn.resourcemanager.connect.max-wait.ms": "8000",
    "yarn.resourcemanager.connect.retry-interval.ms": "1000",
    # for each of the attempts above
    "ipc.client.connect.max.retries": "1",
    "ipc.client.connect.max.retries.on.timeouts": "1",
}
#: what YARN's and HDFS' exceptions say → what they mean; the first that fits
_MEANINGS: Final[tuple[tuple[re.Pattern[str], type[YarnflowError], str], ...]] = (
    (
        re.compile(r"unknown queue|non.?exist\w* queue|queue .*(stopped|not.*exist)|cannot submit", re.I),
        QueueUnavailable,
        "check yarn.application.queue",
    ),
    (
        re.compile(r"InvalidResourceRequest|maximum allowed allocation|max(imum)? allocation", re.I),
        RequestTooLarge,
        "ask for smaller containers",
    ),
    (re.compile(r"safe ?mode", re.I), StorageUnavailable, "wait until HDFS has left safe mode"),
    (
        re.compile(r"AccessControl|Permission denied", re.I),
        StorageDenied,
        "check the permissions of your home directory on HDFS",
    ),
    (
        re.compile(r"connection exception|Connection refused|UnknownHost|timed? ?out|NoRouteToHost", re.I),
        YarnUnavailable,
        "check that YARN and HDFS run and that HADOOP_CONF_DIR is theirs",
    ),
)


@dataclass(frozen=True, slots=True)
class Connection:
    """A started JVM and skein's client of it."""

    jvm: ClientJvm
    client: Any
    security: Any
    hadoop: ClassPath
    folder: Path

    @property
    def application_jar(self) -> Path:
        return self.folder / "application.jar"

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self.client.close()
        self.jvm.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class SkeinSubmitter:
    """:class:`yarnflow.core.yarn.YarnSubmitter`; its JVM is started by ``start`` or when first needed.

    Parameters
    ----------
    conf : HadoopConf
        The client's Hadoop configuration.
    cluster : YarnCluster
        Asked for what needs no JVM.
    environ : mapping
        PATH (with ``yarn``), JAVA_HOME, HOME.
    cache_dir : Path, optional
        For the archive of loaded classes; default ``~/.cache/yarnflow``.
    class_archive : bool
        Use and make that archive; not for whoever submits once.
    connect : callable, optional
        See :func:`start_client`.
    """

    def __init__(
        self,
        conf: HadoopConf,
        cluster: YarnCluster,
        environ: Mapping[str, str],
        cache_dir: Path | None = None,
        *,
        class_archive: bool = True,
        connect: Callable[[HadoopConf, Mapping[str, str], Path | None], Connection] | None = None,
    ) -> None:
        self._conf = conf
        self._cluster = cluster
        self._environ = dict(environ)
        self._cache_dir = (cache_dir or cache_directory(environ)) if class_archive else None
        self._connect = connect or start_client
        self._lock = threading.Lock()
        self._starting: threading.Thread | None = None
        self._connection: Connection | None = None
        self._failure: BaseException | None = None
        self._aborted = False

    def start(self) -> None:
        """Begin to start the JVM in a thread; returns at once.  Idempotent."""
        with self._lock:
            if self._starting is None:
                self._starting = threading.Thread(target=self._start, name="skein-client", daemon=True)
                self._starting.start()

    def submit(self, spec: ApplicationSpec, undone: Callable[[str], object] = lambda _: None) -> str:
        """Submit; returns the application id as soon as YARN has it.

        Parameters
        ----------
        spec : ApplicationSpec
        undone : callable
            Told the id of an application that this submit had left when it failed, once that is killed: its
            files are still there.

        Raises
        ------
        QueueUnavailable, RequestTooLarge, YarnUnavailable
            Before anything was submitted.
        StorageError
            The application's files cannot be written.
        YarnError
            YARN refused.  Whatever is raised, no application is left.
        """
        self.start()
        check_application(spec, self._cluster)
        connection = self._connected()
        write_application_jar(
            connection.application_jar,
            None if SKEIN_JAR_NAME in spec.master.resources else skein_jar(),
            connection.hadoop.jars,
            spec.heartbeat_interval_ms,
        )
        timer = threading.Timer(_SUBMIT_TIMEOUT_S, connection.jvm.kill)
        timer.daemon = True
        timer.start()
        try:
            with _translated(connection):
                application_id: str = connection.client.submit(skein_spec(spec, connection.security))
            return application_id
        except BaseException:
            # the JVM may still be at it, and YARN may have the application already
            connection.jvm.kill()
            self._undo(spec, undone)
            self.close()
            raise
        finally:
            timer.cancel()

    def abort(self) -> None:
        """Have the submit under way fail at once, and undo it; from another thread.  Final, idempotent."""
        with self._lock:
            self._aborted = True
            connection = self._connection
        if connection is not None:
            connection.jvm.kill()

    def kill(self, application_id: str) -> None:
        """End an application by force, without a JVM.  Idempotent; raises ApplicationNotFound."""
        self._cluster.kill(application_id)

    def close(self) -> None:
        """End the JVM.  Idempotent; the next call that needs it starts another."""
        with self._lock:
            starting = self._starting
        if starting is not None:
            starting.join()
        with self._lock:
            connection, self._connection = self._connection, None
            self._starting = self._failure = None
        if connection is not None:
            connection.close()

    def _start(self) -> None:
        try:
            self._connection = self._connect(self._conf, self._environ, self._cache_dir)
        except BaseException as error:  # raised where somebody waits for it
            self._failure = error

    def _connected(self) -> Connection:
        self.start()
        with self._lock:
            starting = self._starting
        if starting is not None:
            starting.join()
        with self._lock:
            connection, failure, aborted = self._connection, self._failure, self._aborted
            if failure is not None:
                self._starting = self._failure = None
        if aborted:
            self.close()
            raise YarnError("could not submit to YARN: the submit was given up")
        if failure is not None:
            raise failure
        if connection is None:
            raise YarnError("the client of skein was closed while it was needed")
        return connection

    def _undo(self, spec: ApplicationSpec, undone: Callable[[str], object]) -> None:
        if not spec.tags:
            return
        with contextlib.suppress(YarnflowError):
            # the tag that is not on any other application comes last, but all are compared
            for found in self._cluster.applications(tag=spec.tags[-1]):
                if not found.state.ended and {tag.lower() for tag in spec.tags} <= set(found.tags):
                    self._cluster.kill(found.application_id)
                    undone(found.application_id)


def start_client(conf: HadoopConf, environ: Mapping[str, str], cache_dir: Path | None) -> Connection:
    """Start the JVM and connect to it."""
    hadoop = hadoop_class_path(environ, conf.directory)
    credentials = new_credentials()
    folder = Path(tempfile.mkdtemp(prefix="yarnflow-client-"))
    # for whoever ends without close(); the JVM ends by itself
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    hadoop = replace(hadoop, folders=(impatient_configuration(folder, conf.directory), *hadoop.folders))
    jvm = ClientJvm(
        skein_jar(),
        folder / "application.jar",
        hadoop,
        credentials,
        environ,
        folder / "client.log",
        cache_dir,
    )
    try:
        address = jvm.start()
        client, security = _client(address, credentials)
        return Connection(jvm, client, security, hadoop, folder)
    except BaseException:
        jvm.kill()
        jvm.close()
        shutil.rmtree(folder, ignore_errors=True)
        raise


def impatient_configuration(folder: Path, conf_dir: Path) -> Path:
    """A configuration folder that makes YARN's client give up after seconds, not a quarter of an hour."""
    properties = "".join(
        f"  <property><name>{name}</name><value>{value}</value></property>\n"
        for name, value in _IMPATIENCE.items()
    )
    include = f'  <xi:include href="{(conf_dir / "yarn-site.xml").absolute().as_uri()}"/>\n'
    (folder / "conf").mkdir()
    (folder / "conf" / "yarn-site.xml").write_text(
        '<?xml version="1.0"?>\n<configuration xmlns:xi="http://www.w3.org/2001/XInclude">\n'
        f"{include}{properties}</configuration>\n"
    )
    return folder / "conf"


def _client(address: str, credentials: Credentials) -> tuple[Any, Any]:
    library = skein()
    security = library.Security(cert_bytes=credentials.certificate, key_bytes=credentials.key)
    return library.Client(address=address, security=security), security


@contextlib.contextmanager
def _translated(connection: Connection) -> Iterator[None]:
    """skein's errors as ours."""
    exceptions = skein().exceptions
    try:
        yield
    except exceptions.ConnectionError as error:
        raise YarnUnavailable(
            f"could not submit to YARN: skein's Java client ended, or had no answer within "
            f"{_SUBMIT_TIMEOUT_S:.0f} s: {connection.jvm.last_output()}"
        ) from error
    except exceptions.SkeinError as error:
        text = str(error)
        for pattern, kind, advice in _MEANINGS:
            if pattern.search(text):
                raise kind(f"could not submit to YARN: {_first_line(text)}; {advice}") from error
        raise YarnError(f"could not submit to YARN: {_first_line(text)}") from error


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    # "Failed to submit application, exception:" is followed by the reason on a line of its own
    said = " ".join(lines[:2]) if lines and lines[0].endswith(":") else (lines or [""])[0]
    return said if len(said) <= 400 else said[:397] + "…"

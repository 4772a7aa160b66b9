"""The JVM of skein's client.

Decides how it is started: with its own certificate, with little of HotSpot, and with an archive of
the classes it loads, which the first one of a Hadoop version leaves behind for those that follow.
It ends when this process ends, however that happens, because its standard input closes.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import select
import socket
import struct
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from yarnflow.errors import JavaUnavailable, YarnUnavailable
from yarnflow.yarn.class_path import ClassPath
from yarnflow.yarn.credentials import Credentials

_MAIN_CLASS: Final = "com.anaconda.skein.Driver"
_START_TIMEOUT_S: Final = 120.0
_END_TIMEOUT_S: Final = 5.0
_OPTIONS: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xmx256m")
#: raised when the options change in a way an archive depends on
_FORMAT: Final = "1"
_SMALLEST_ARCHIVE_BYTES: Final = 1 << 20
_ERROR: Final = re.compile(r"\b(ERROR|FATAL)\b")


class ClientJvm:
    """skein's ``Driver`` as a child process.

    Parameters
    ----------
    skein_jar : Path
    application_jar : Path
        Sent along with every application as ``.skein.jar``; need not exist before a submit.
    hadoop : ClassPath
    credentials : Credentials
        For both sides of every call.
    environ : mapping
        JAVA_HOME, HADOOP_USER_NAME, …
    log : Path
        Gets the output of the JVM.
    cache_dir : Path, optional
        For archives of loaded classes; None = none are used.
    """

    def __init__(
        self,
        skein_jar: Path,
        application_jar: Path,
        hadoop: ClassPath,
        credentials: Credentials,
        environ: Mapping[str, str],
        log: Path,
        cache_dir: Path | None = None,
    ) -> None:
        self._java = java_program(environ)
        self._jars = (skein_jar, *hadoop.jars)
        self._log = log
        self._cache = None if cache_dir is None else ClassArchive(self._java, self._jars, cache_dir)
        self._command = [
            self._java,
            *_OPTIONS,
            *(self._cache.options() if self._cache is not None else ()),
            _MAIN_CLASS,
            "--jar",
            str(application_jar),
        ]
        self._environment = {
            **environ,
            "CLASSPATH": hadoop.text(skein_jar),
            "SKEIN_CERTIFICATE": credentials.certificate.decode(),
            "SKEIN_KEY": credentials.key.decode(),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> str:
        """Start it and wait; returns its gRPC address.

        Raises
        ------
        JavaUnavailable
            There is no java.
        YarnUnavailable
            The JVM ended at once, or said nothing for two minutes.
        """
        with socket.socket() as callback:
            callback.bind(("127.0.0.1", 0))
            callback.listen(1)
            environment = {**self._environment, "SKEIN_CALLBACK_PORT": str(callback.getsockname()[1])}
            try:
                with self._log.open("wb") as log:
                    self._process = subprocess.Popen(
                        self._command,
                        stdin=subprocess.PIPE,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                        env=environment,
                        # a Ctrl-C in the terminal is for this process to deal with
                        start_new_session=True,
                    )
            except FileNotFoundError:
                raise JavaUnavailable(f"there is no {self._java}; install Java or set JAVA_HOME") from None
            return f"127.0.0.1:{self._await_port(callback, self._process)}"

    def kill(self) -> None:
        """End it at once, with whatever it is doing.  Idempotent."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()

    def close(self) -> None:
        """End it in good order, and have the archive made if there is none.  Idempotent."""
        process = self._process
        if process is None:
            return
        with contextlib.suppress(OSError):
            _stream(process.stdin).close()
        try:
            process.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._process = None
        if self._cache is not None and process.returncode == 0:
            self._cache.build()

    def last_output(self) -> str:
        """The last error it has logged, or its last line; empty when there is none."""
        try:
            lines = self._log.read_text(errors="replace").splitlines()
        except OSError:
            return ""
        errors = [line for line in lines if _ERROR.search(line)]
        failures = [line for line in lines if "Exception" in line]
        return " ".join((errors or failures or lines or [""])[-1].split())[:300]

    def _await_port(self, callback: socket.socket, process: subprocess.Popen[bytes]) -> int:
        deadline = time.monotonic() + _START_TIMEOUT_S
        ended = os.pidfd_open(process.pid)
        try:
            ready, _, _ = select.select([callback.fileno(), ended], [], [], _START_TIMEOUT_S)
        finally:
            os.close(ended)
        content = b""
        if callback.fileno() in ready:
            connection, _ = callback.accept()
            connection.settimeout(max(1.0, deadline - time.monotonic()))
            with connection, connection.makefile("rb") as stream, contextlib.suppress(OSError):
                content = stream.read(4)
        if len(content) == 4:
            port: int = struct.unpack("!i", content)[0]
            return port
        if process.poll() is None:
            self.kill()
            raise YarnUnavailable(
                f"skein's Java client did not start within {_START_TIMEOUT_S:.0f} s: {self.last_output()}"
            )
        raise YarnUnavailable(
            f"skein's Java client ended with exit status {process.returncode}: {self.last_output()}"
        )


class ClassArchive:
    """An archive of loaded classes for one Java and one list of jars.

    It takes some ten seconds to make, once, by a process of its own that nobody waits for; a JVM
    ignores an archive that does not fit, so nothing here can make a start fail.
    """

    def __init__(self, java: str, jars: Sequence[Path], cache_dir: Path) -> None:
        self._java = java
        self._jars = jars
        self._directory = cache_dir / "cds"
        key = hashlib.sha256(_FORMAT.encode())
        for path in (Path(java).resolve(), *jars):
            status = path.stat()
            key.update(f"{path}:{status.st_size}:{status.st_mtime_ns}\n".encode())
        stem = f"yarn-client-{key.hexdigest()[:16]}"
        self._archive = self._directory / f"{stem}.jsa"
        self._classes = self._directory / f"{stem}.classes"

    def options(self) -> list[str]:
        """Use the archive, or write down the classes for it."""
        if _usable(self._archive):
            return ["-Xshare:auto", f"-XX:SharedArchiveFile={self._archive}"]
        try:
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError:
            return []
        return ["-Xshare:auto", f"-XX:DumpLoadedClassList={self._own(self._classes)}"]

    def build(self, *, wait: bool = False) -> None:
        """Begin to make the archive from the classes that were written down."""
        listed = self._own(self._classes)
        if _usable(self._archive) or not listed.is_file():
            return
        temporary = self._own(self._archive)
        command = [
            *(self._java, *_OPTIONS, "-Xshare:dump"),
            *(f"-XX:SharedClassListFile={listed}", f"-XX:SharedArchiveFile={temporary}"),
            *("-cp", ":".join(map(str, self._jars))),
        ]
        # the shell outlives this process, which may be over in a moment; a half-written archive
        # must never be seen under its name
        script = '{ nice -n 19 "$@" && mv -f "$made" "$archive"; rm -f "$made" "$classes"; }'
        script += "" if wait else " &"
        with contextlib.suppress(OSError):
            subprocess.run(
                ["/bin/sh", "-c", script, "sh", *command],
                env={
                    "PATH": os.defpath,
                    "made": str(temporary),
                    "archive": str(self._archive),
                    "classes": str(listed),
                },
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                check=False,
            )
        self._remove_stale()

    def _own(self, path: Path) -> Path:
        return path.with_name(f"{path.name}.{os.getpid()}")

    def _remove_stale(self) -> None:
        """Archives nobody has used for a month, and what a killed process left."""
        for path in self._directory.glob("yarn-client-*"):
            with contextlib.suppress(OSError):
                status = path.stat()
                days = (time.time() - max(status.st_atime, status.st_mtime)) / 86_400
                if days > (30 if path.suffix == ".jsa" else 1):
                    path.unlink()


def java_program(environ: Mapping[str, str]) -> str:
    """``$JAVA_HOME/bin/java``, else the first ``java`` on PATH.

    Raises
    ------
    JavaUnavailable
        There is none.
    """
    home = environ.get("JAVA_HOME", "")
    folders = [Path(home) / "bin"] if home else [Path(p) for p in environ.get("PATH", "").split(":") if p]
    for folder in folders:
        if os.access(folder / "java", os.X_OK):
            return str(folder / "java")
    where = f"{home}/bin (JAVA_HOME)" if home else "PATH"
    raise JavaUnavailable(
        f"there is no java in {where}, which submitting to YARN needs; install it or set JAVA_HOME"
    )


def _usable(path: Path) -> bool:
    try:
        status = path.stat()
    except OSError:
        return False
    # an archive somebody else could have written could carry somebody else's code
    return status.st_size >= _SMALLEST_ARCHIVE_BYTES and status.st_uid in (os.getuid(), 0)


def _stream(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream

"""Runs the command ``yarnflow`` in a process of its own, and reads its document.

What a submit imports (the program's modules, Thrift, Hadoop's clients) is imported there and not in the
worker.  The kernel tells the process to end when the worker's ends, even by ``kill -9``: a submit then takes
back what no cluster has accepted yet.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final
from weakref import WeakKeyDictionary

from yarnflow.airflow.hooks.errors import CommandFailed, ConnectionUnusable, YarnflowTaskError
from yarnflow.airflow.hooks.settings import Settings
from yarnflow.config.configuration import (
    CONF_DIR_VARIABLE,
    ENVIRONMENT_PREFIX,
    Configuration,
    environment_variable,
)
from yarnflow.config.options import OPTIONS_BY_KEY
from yarnflow.config.options.client import TARGET
from yarnflow.config.secrets import is_secret
from yarnflow.errors import ConfigError
from yarnflow.process.spawn import wrap_command

#: settings and secrets of Airflow are nothing to a user's program
_AIRFLOWS: Final = ("AIRFLOW__", "_AIRFLOW", "__AIRFLOW")
#: a process that was told to end cleans up on YARN and HDFS
_CLEAN_UP_S: Final = 20.0
#: until all is read that a process which has ended has written
_LAST_OUTPUT_S: Final = 5.0

#: verbs that only ask end within that: in the triggerer one that hangs would keep others from their turn
_ASKED_S: Final = 180.0
_ASKING: Final = frozenset({"info", "list", "token"})
#: commands that the triggerer runs at the same time; after a restart all its triggers look for their jobs
_AT_ONCE: Final = 4

Note = Callable[[str], None]
#: event loop → who may run one
_turns: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]] = WeakKeyDictionary()


class Command:
    """The command of one connection.

    Parameters
    ----------
    settings : Settings
    environ : mapping
        Variables of this process.
    """

    def __init__(self, settings: Settings, environ: Mapping[str, str] = os.environ) -> None:
        self._settings = settings
        self._environ = environ
        self._process: subprocess.Popen[str] | None = None
        #: a process is being made, which is not known yet
        self._starts = False
        self._told_to_end = False

    def run(self, verb: str, arguments: Sequence[str], note: Note, options: Mapping[str, str] = {}) -> Any:
        """Run a verb to its end; returns its document.

        Must be called by a thread that lives as long as the process does: the kernel ends the command
        with it.

        Parameters
        ----------
        note : callable
            Told each line that the command writes for people.
        options : mapping
            ``-D`` over those of the connection.

        Raises
        ------
        CommandFailed
            It ended with an error.
        ConnectionUnusable
            There is no such command, or an option may not be given so.
        """
        command, environ = self.command_line(verb, arguments, options)
        self._starts, self._told_to_end = True, False
        try:
            self._process = process = subprocess.Popen(
                wrap_command(command, death_signal=signal.SIGTERM),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environ,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise self._cannot_run(error) from None
        finally:
            self._starts = False
        if self._told_to_end:
            self.terminate()
        assert process.stdout is not None and process.stderr is not None
        document: list[str] = []
        said = _LastLine(note)
        readers = [_reader(process.stdout, document.append), _reader(process.stderr, said)]
        try:
            status = process.wait(_ASKED_S if verb in _ASKING else None)
        except subprocess.TimeoutExpired:
            raise CommandFailed("", f"the command yarnflow has not ended within {_ASKED_S:g} s") from None
        finally:
            # the wait may have been broken off: by a time-out of Airflow, for one
            self._end(process)
            for reader in readers:
                # what a program has left behind may hold the pipes open
                reader.join(_LAST_OUTPUT_S)
            self._process = None
        return _outcome(status, "".join(document), said.end())

    def terminate(self) -> bool:
        """Tell what runs to end in good order; returns whether there is something.

        For signal handlers: waits for nothing, as the thread that is interrupted may wait already.
        """
        process = self._process
        if process is None and self._starts:
            self._told_to_end = True
            return True
        if process is None or process.returncode is not None:
            return False
        _signal(process.pid, signal.SIGTERM)
        return True

    @staticmethod
    def _end(process: subprocess.Popen[str]) -> None:
        if process.poll() is not None:
            return
        _signal(process.pid, signal.SIGTERM)
        try:
            process.wait(_CLEAN_UP_S)
        except subprocess.TimeoutExpired:
            _signal(process.pid, signal.SIGKILL)
            process.wait()

    async def arun(self, verb: str, arguments: Sequence[str], options: Mapping[str, str] = {}) -> Any:
        """The same in the triggerer: blocks nothing, tells nobody of lines for people."""
        command, environ = self.command_line(verb, arguments, options)
        async with _turn():
            return await self._arun(command, environ)

    async def _arun(self, command: Sequence[str], environ: Mapping[str, str]) -> Any:
        # the first time it looks for a tool of the system
        wrapped = await asyncio.to_thread(wrap_command, command, death_signal=signal.SIGTERM)
        try:
            process = await asyncio.create_subprocess_exec(
                *wrapped,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environ,
                start_new_session=True,
            )
        except OSError as error:
            raise self._cannot_run(error) from None
        try:
            async with asyncio.timeout(_ASKED_S):
                output, said = await process.communicate()
        except TimeoutError:
            raise CommandFailed("", f"the command yarnflow has not ended within {_ASKED_S:g} s") from None
        finally:
            if process.returncode is None:
                # nobody waits for the answer any more; verbs that ask have nothing to clean up
                _signal(process.pid, signal.SIGKILL)
                with suppress(TimeoutError):
                    # what it has left behind may hold the pipes open
                    await asyncio.wait_for(process.communicate(), _LAST_OUTPUT_S)
        lines = said.decode(errors="replace").strip().splitlines()
        assert process.returncode is not None
        return _outcome(process.returncode, output.decode(errors="replace"), lines[-1] if lines else "")

    def start_alone(self, verbs: Sequence[tuple[str, Sequence[str]]]) -> subprocess.Popen[bytes]:
        """Begin a verb that goes on when this process is gone; the next one is for when it fails.

        Nobody hears what comes of it.  A container's processes end with it: who can wait, should.

        Returns
        -------
        Popen
            Ends with the last verb.

        Raises
        ------
        ConnectionUnusable
            See :meth:`run`.
        """
        lines = [self.command_line(verb, arguments, {}) for verb, arguments in verbs]
        script = " || ".join(shlex.join(command) for command, _ in lines)
        return subprocess.Popen(
            ["sh", "-c", script],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=lines[0][1],
            start_new_session=True,
        )

    def command_line(
        self, verb: str, arguments: Sequence[str], options: Mapping[str, str]
    ) -> tuple[list[str], dict[str, str]]:
        """Command line and environment of a verb; secrets are in the latter only.

        Raises
        ------
        ConnectionUnusable
            A secret that only a command line could take, which everybody on the machine can read.
        """
        settings = self._settings
        environ = {
            name: value for name, value in self._environ.items() if not name.startswith(_AIRFLOWS)
        }
        if settings.hadoop_conf_dir:
            environ["HADOOP_CONF_DIR"] = settings.hadoop_conf_dir
        environ.update(settings.env)
        command = [*_executable(settings, environ), verb, "--json"]
        if settings.conf_dir:
            command += ["--conf-dir", settings.conf_dir]
        for key, value in {**settings.options, **options}.items():
            if is_secret(key):
                environ[_variable(settings, key)] = value
            else:
                command.append(f"-D{key}={value}")
        return [*command, *arguments], environ

    def configured_target(self) -> str:
        """``execution.target`` as the command finds it where no task and no field of the connection says it.

        Raises
        ------
        ConnectionUnusable
            The configuration on this worker cannot be read.
        """
        settings = self._settings
        environ = {**self._environ, **settings.env}
        directory = settings.conf_dir or environ.get(CONF_DIR_VARIABLE, "")
        dynamic = [f"{key}={value}" for key, value in settings.options.items()]
        try:
            found = Configuration.load(Path(directory) if directory else None, environ, dynamic)
        except ConfigError as error:
            raise ConnectionUnusable(f"connection {settings.conn_id}: {error}") from None
        return found.get(TARGET)

    def _cannot_run(self, error: OSError) -> YarnflowTaskError:
        if error.errno == errno.E2BIG:
            return CommandFailed(
                "USAGE",
                "arguments and options of the command yarnflow are longer than this machine takes (128 KiB "
                "each, 2 MiB in all, with the environment); put what is long into a file, and name that",
            )
        return ConnectionUnusable(
            f"connection {self._settings.conn_id}: the command yarnflow cannot be run: "
            f"{error.filename or self._settings.command}: {error.strerror}"
        )


def _turn() -> asyncio.Semaphore:
    return _turns.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(_AT_ONCE))


def _executable(settings: Settings, environ: Mapping[str, str]) -> list[str]:
    if settings.command:
        path = Path(settings.command).expanduser()
        # the prefix that starts it would say so in words of a shell
        if not path.is_file():
            raise ConnectionUnusable(
                f"connection {settings.conn_id}: there is no command {settings.command} on this worker"
            )
        if not os.access(path, os.X_OK):
            raise ConnectionUnusable(
                f"connection {settings.conn_id}: {settings.command} may not be executed; name the command "
                "yarnflow"
            )
        return [str(path)]
    beside = Path(sys.executable).with_name("yarnflow")
    return [str(beside)] if beside.is_file() else [sys.executable, "-P", "-m", "yarnflow.cli"]


def _variable(settings: Settings, key: str) -> str:
    option = OPTIONS_BY_KEY.get(key)
    if option is None:
        raise ConnectionUnusable(
            f"option {key} is a secret, and a command line can be read by everybody on the worker; put it "
            f"into yarnflow-conf.yaml in conf_dir of connection {settings.conn_id}"
        )
    variable = environment_variable(option)
    assert variable.startswith(ENVIRONMENT_PREFIX)
    return variable


class _LastLine:
    """Passes lines on, all but the last one: with an error that is a document."""

    def __init__(self, note: Note) -> None:
        self._note = note
        self._last = ""

    def __call__(self, line: str) -> None:
        if line.strip():
            self._pass_on()
            self._last = line.rstrip("\n")

    def end(self) -> str:
        """The last line; told, too, unless it is a document."""
        if not self._last.startswith("{"):
            self._pass_on()
        return self._last

    def _pass_on(self) -> None:
        if self._last:
            self._note(self._last)


def _reader(stream: IO[str], take: Callable[[str], None]) -> threading.Thread:
    def read() -> None:
        with stream:
            for line in stream:
                take(line)

    thread = threading.Thread(target=read, name="yarnflow-command", daemon=True)
    thread.start()
    return thread


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        # it is the head of a session of its own
        os.killpg(pid, number)
    except ProcessLookupError:
        pass


def _outcome(status: int, output: str, last_line: str) -> Any:
    """The document of a command that has ended.

    Raises
    ------
    CommandFailed
        Its status is not 0, or there is no document.
    """
    if status == 0:
        try:
            return json.loads(output)
        except ValueError:
            # a token may be in it
            said = f"{len(output)} characters that are no JSON" if output else "nothing"
            raise CommandFailed("", f"the command yarnflow wrote {said} instead of its document") from None
    try:
        error = json.loads(last_line)["error"]
        details = error.get("details", "")
        raise CommandFailed(error["code"], error["message"], details, _done_before(output))
    except (ValueError, KeyError, TypeError):
        said = f": {last_line}" if last_line else " and said nothing"
        ended = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
        raise CommandFailed("", f"the command yarnflow {ended}{said}") from None


def _done_before(output: str) -> Mapping[str, Any] | None:
    """The document that a verb has written although it then failed; None = there is none."""
    try:
        found = json.loads(output)
    except ValueError:
        return None
    return found if isinstance(found, Mapping) else None

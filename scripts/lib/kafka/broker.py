"""The broker: its folder, settings and process, and whether it works."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from hadoop import jars
from hadoop.errors import USAGE, ClusterError
from hadoop.output import say
from hadoop.ports import free_ports

POM = Path(__file__).with_name("pom.xml")
# a variable of the broker's environment: no pid is kept in a file, so none that was reused can be mistaken
MARK = "YARNFLOW_KAFKA_BROKER"
_HEAP_MB = 384
_GRACE_S = 10.0
_POLL_S = 0.1
_LOG_LINES = 25
_HOST = "127.0.0.1"
# ApiVersions, which every client asks first: key, version, correlation id, no client id
_HELLO = struct.pack(">hhih", 18, 0, 1, -1)


@dataclass
class State:
    """What the state file holds: all that is needed to start the broker again."""

    java_home: str
    jars: str
    port: int = 0
    controller_port: int = 0
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def servers(self) -> str:
        """Where clients find it."""
        return f"{_HOST}:{self.port}"


class Broker:
    """The broker of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(os.path.realpath(folder))
        self.log = self.folder / "broker.log"
        self._state_file = self.folder / "yarnflow-kafka.json"
        self._data = self.folder / "data"
        self._settings = self.folder / "server.properties"
        if not re.fullmatch(r"[\w./+@~-]+", str(self.folder)):
            raise ClusterError(f"{self.folder}: Kafka takes no blanks or commas in paths", USAGE)

    # --- what there is ------------------------------------------------------------

    def state(self) -> State | None:
        """What was started here, if anything."""
        try:
            return State(**json.loads(self._state_file.read_text(encoding="utf-8")))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (ValueError, TypeError):
            raise ClusterError(
                f"{self._state_file} is damaged or of another version; "
                f"`scripts/kafka stop --dir {self.folder}` ends that broker"
            ) from None

    def pid(self) -> int | None:
        """The broker's process, if it runs."""
        mark = os.fsencode(f"\0{MARK}={self.folder}\0")
        for entry in os.listdir("/proc"):
            with contextlib.suppress(OSError, IndexError):
                if not entry.isdigit() or mark not in b"\0" + Path("/proc", entry, "environ").read_bytes():
                    continue
                # the second field, a name in brackets, can hold blanks and brackets
                if Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()[0] not in "ZXx":
                    return int(entry)
        return None

    def running(self) -> State:
        """What runs here, which must be there."""
        state = self.state()
        if state is None or self.pid() is None:
            raise ClusterError(f"no broker runs in {self.folder}; start one with `scripts/kafka start`")
        return state

    # --- start and stop -----------------------------------------------------------

    def start(self, settings: Mapping[str, str], timeout_s: float, port: int = 0) -> None:
        """Bring it up, with what it had if it was here before; leaves nothing of a new one that fails.

        ``port`` is a new broker's; 0 = any that is free.

        Raises
        ------
        ClusterError
            The folder is not ours, or the broker did not become ready.
        """
        java_home, fetched = jars.find_java(), fetch()
        with self._locked():
            names = {entry.name for entry in self.folder.iterdir()}
            if names and self._state_file.name not in names:
                raise ClusterError(f"{self.folder} holds other files; name an empty folder or a new one")
            state = self.state()
            if self.pid() is not None:
                say(f"a broker runs in {self.folder} already")
                return
            new = state is None
            if state is None:
                ports = free_ports(2)
                state = State(str(java_home), str(fetched), port or ports[0], ports[1], dict(settings))
                self._state_file.write_text(json.dumps(asdict(state), indent=2) + "\n", encoding="utf-8")
            try:
                if new:
                    self._format(state)
                self._run(state, timeout_s)
            except BaseException:
                # ^C once more must not leave half of it behind
                for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                    signal.signal(number, signal.SIG_IGN)
                self._show_log()
                self._end(0.0)
                if new:
                    shutil.rmtree(self.folder)
                raise

    def stop(self) -> None:
        """End it and remove its folder."""
        if not self.folder.exists():
            say(f"no broker ran in {self.folder}")
            return
        with self._locked():
            if any(self.folder.iterdir()) and not self._state_file.exists():
                raise ClusterError(f"{self.folder} holds no broker; nothing was touched")
            self._end(_GRACE_S)
            shutil.rmtree(self.folder)
        say(f"stopped the broker in {self.folder}")

    def kill(self) -> None:
        """Kill it with SIGKILL; ``start`` brings it back, with its data and on its port."""
        self.running()
        self._end(0.0)

    def _format(self, state: State) -> None:
        self._data.mkdir()
        (self.folder / "tmp").mkdir()
        self._settings.write_text("".join(f"{k}={v}\n" for k, v in self._properties(state).items()))
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # one word: every 64th id begins with a dash, which alone would be taken for an option
        words = ["kafka.tools.StorageTool", "format", f"--cluster-id={cluster_id}", "-c", str(self._settings)]
        if self._java(state, words).wait() != 0:
            raise ClusterError("Kafka could not format its storage")

    def _run(self, state: State, timeout_s: float) -> None:
        process = self._java(state, ["kafka.Kafka", str(self._settings)])
        until = time.monotonic() + timeout_s
        while not _answers(state.port):
            if process.poll() is not None:
                raise ClusterError(f"the broker ended with status {process.returncode}")
            if time.monotonic() > until:
                raise ClusterError(f"the broker was not ready after {timeout_s:.0f} s")
            time.sleep(_POLL_S)

    def _java(self, state: State, words: list[str]) -> subprocess.Popen[bytes]:
        command = [
            f"{state.java_home}/bin/java",
            f"-Xmx{_HEAP_MB}m",
            # small and quick to start rather than fast in the long run
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-XX:+ExitOnOutOfMemoryError",
            # writes below /tmp, whatever java.io.tmpdir says
            "-XX:-UsePerfData",
            f"-Djava.io.tmpdir={self.folder}/tmp",
            "-Djava.net.preferIPv4Stack=true",
            # Log4j without a file of settings shows errors alone
            "-Dorg.apache.logging.log4j.level=INFO",
            "-cp",
            f"{state.jars}/lib/*",
            *words,
        ]
        kept = {key: os.environ[key] for key in ("LANG", "TZ", "PATH", "HOME") if key in os.environ}
        with open(self.log, "ab") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env={**kept, MARK: str(self.folder)},
                start_new_session=True,
            )

    def _properties(self, state: State) -> dict[str, str]:
        controller = f"{_HOST}:{state.controller_port}"
        alone = {
            f"{topic}.{setting}": "1"
            for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
            for setting in ("replication.factor", "num.partitions")
        }
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{controller}",
            "listeners": f"PLAINTEXT://{state.servers},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{state.servers}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(self._data),
            **alone,
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            # messages of tests have times of their own, some of long ago
            "log.retention.ms": "-1",
            # a topic that nobody made is a mistake of the test's
            "auto.create.topics.enable": "false",
            **state.settings,
        }

    def _end(self, grace_s: float) -> None:
        until = time.monotonic() + grace_s
        asked = False
        while (pid := self.pid()) is not None:
            with contextlib.suppress(ProcessLookupError):
                if time.monotonic() >= until:
                    os.kill(pid, signal.SIGKILL)
                elif not asked:
                    os.kill(pid, signal.SIGTERM)
                    asked = True
            time.sleep(_POLL_S)

    def _show_log(self) -> None:
        with contextlib.suppress(OSError):
            lines = self.log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
            say(f"the end of {self.log}:")
            for line in lines:
                say(f"  {line}")

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other runs off this folder; the lock is on the folder itself, so nothing is left of it."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise ClusterError(f"{self.folder} cannot be used: {error.strerror}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def fetch() -> Path:
    """The folder with the broker's ``lib/*.jar``, made by Maven if it is not there yet."""
    found = re.search(r"<kafka\.version>([^<]+)<", POM.read_text(encoding="utf-8"))
    assert found is not None, "the pom pins a version"
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    cache = Path(base, "yarnflow", f"kafka-{found[1]}").absolute()
    what = f"Kafka {found[1]} (about 60 MB)"
    return jars.fetch_by_maven(
        POM, cache, what, ["dependency:copy-dependencies"], {"target/dependency": "lib"}
    )


def _answers(port: int) -> bool:
    """Whether the broker serves clients: it takes none before the cluster lets it."""
    try:
        with socket.create_connection((_HOST, port), timeout=5.0) as connection:
            connection.sendall(struct.pack(">i", len(_HELLO)) + _HELLO)
            return len(connection.recv(4)) > 0
    except OSError:
        return False

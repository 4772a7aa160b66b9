"""A real Hadoop for tests: what ``scripts/hadoop`` starts, and a hand on its HDFS, YARN and daemons."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

import hdfs
import psutil
import requests

from tests.patience import PATIENCE

_SCRIPT: Final = Path(__file__).resolve().parents[1] / "scripts/hadoop"


def all_processes() -> Iterator[psutil.Process]:
    """Of this machine, as they are now."""
    # it keeps those that it has seen; a number that another process has by now would be taken for theirs
    psutil.process_iter.cache_clear()
    yield from psutil.process_iter()


class Hdfs:
    """The cluster's HDFS by WebHDFS, as its superuser; paths are absolute."""

    def __init__(self, url: str, user: str) -> None:
        session = requests.Session()
        # no proxy of the machine's stands between this and a daemon on it
        session.trust_env = False
        self.client = hdfs.InsecureClient(url, user=user, session=session, timeout=PATIENCE.answer_s)
        self._session, self._url, self._user = session, url, user

    def put(self, path: str, content: bytes) -> None:
        """Write a file, replacing what is there."""
        self.client.write(path, data=content, overwrite=True)

    def read(self, path: str) -> bytes:
        """A file's content."""
        with self.client.read(path) as reader:
            return bytes(reader.read())

    def list(self, path: str) -> list[str]:
        """Names in a folder, in order."""
        return sorted(self.client.list(path))

    def exists(self, path: str) -> bool:
        """Whether there is such a file or folder."""
        return self.client.status(path, strict=False) is not None

    def status(self, path: str) -> dict[str, Any]:
        """WebHDFS's FileStatus: owner, permission, length in bytes, …"""
        return dict(self.client.status(path))

    def rename(self, old: str, new: str) -> None:
        """Rename a file or folder; raises ``hdfs.HdfsError`` where there is none."""
        self.client.rename(old, new)

    def make_folder(self, path: str) -> None:
        """Make a folder and those above it."""
        self.client.makedirs(path)

    def delete(self, path: str) -> bool:
        """Delete a file, or a folder with all in it; returns whether there was one."""
        return bool(self.client.delete(path, recursive=True))

    def set_space_quota(self, path: str, quota_bytes: int) -> None:
        """What all files of a folder may take; -1 = no limit."""
        asked = {"op": "SETQUOTA", "storagespacequota": str(quota_bytes), "user.name": self._user}
        self._session.put(
            f"{self._url}/webhdfs/v1{path}", params=asked, timeout=PATIENCE.answer_s
        ).raise_for_status()


class HadoopCluster:
    """A running cluster; make one with :meth:`start`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._variables = cast(dict[str, str], json.loads(_run("env", folder, "--json")))
        self.hdfs = Hdfs(self._variables["YARNFLOW_TEST_NAMENODE"], psutil.Process().username())

    @classmethod
    def start(
        cls, folder: Path, zookeepers: int = 1, settings: Mapping[str, str] | None = None
    ) -> HadoopCluster:
        """Start a cluster that works when this returns.

        Parameters
        ----------
        folder
            Where all its files go; must not exist or be empty.
        zookeepers
            Servers of its ZooKeeper ensemble.
        settings
            Of HDFS or YARN, over those of ``scripts/hadoop``: ``{"yarn.nm.liveness-monitor…": "5000"}``.

        Raises
        ------
        AssertionError
            It did not start; carries the end of the failing daemon's log.
        """
        options = [f"--set={key}={value}" for key, value in (settings or {}).items()]
        _run("start", folder, f"--zookeepers={zookeepers}", *options)
        return cls(folder)

    def stop(self) -> None:
        """End it, containers included, and remove all its files; also works on one that is gone."""
        _run("stop", self.folder)

    def env(self) -> dict[str, str]:
        """Variables that a process needs to use the cluster, ``PATH`` and skein's folder included."""
        return {**self._variables, "SKEIN_CONFIG": str(self.folder / "skein")}

    @property
    def zookeeper(self) -> str:
        """``host:port,…`` of the ensemble."""
        return self._variables["YARNFLOW_TEST_ZOOKEEPER"]

    @property
    def resource_manager(self) -> str:
        """URL of the ResourceManager's web server."""
        return self._variables["YARNFLOW_TEST_RESOURCEMANAGER"]

    def run(self, *command: str | Path, timeout_s: float | None = None) -> str:
        """Run a client command (``yarn``, ``hdfs``, …) against the cluster; returns its standard output."""
        return _checked(
            command, {**os.environ, **self.env()}, PATIENCE.command_s if timeout_s is None else timeout_s
        )

    def kill(self, daemon: str) -> None:
        """``kill -9`` a daemon and wait until it is gone; of a NodeManager the containers stay."""
        _run("kill", self.folder, daemon)

    def pause(self, daemon: str) -> None:
        """Halt a daemon: it keeps its connections and answers nothing."""
        _run("pause", self.folder, daemon)

    def resume(self, daemon: str) -> None:
        """Let a halted daemon go on."""
        _run("resume", self.folder, daemon)

    def restart(self, daemon: str) -> None:
        """End a daemon if it runs, start it on the same ports, wait until it works."""
        _run("restart", self.folder, daemon)

    def restart_quorum(self, servers: Sequence[str]) -> None:
        """Start the servers of a ZooKeeper quorum, none of which runs, and wait until they work.

        The first one serves nobody before there are more, so there is nothing to wait for.
        """
        first, *others = servers
        try:
            _run("restart", self.folder, "--timeout", "1", first)
        except AssertionError as error:
            if f"{first} was not ready" not in str(error):
                raise
        for server in others:
            self.restart(server)

    def safe_mode(self, on: bool) -> None:
        """Make HDFS refuse changes, or take them again."""
        self.run("hdfs", "dfsadmin", "-safemode", "enter" if on else "leave")

    def yarn_applications(self, states: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Applications as the ResourceManager's REST API shows them; no ``states`` = in whatever state."""
        query = f"?states={','.join(states)}" if states else ""
        answer = _get(f"{self.resource_manager}/ws/v1/cluster/apps{query}")
        return list((answer["apps"] or {}).get("app", []))

    def yarn_application(self, application_id: str) -> dict[str, Any]:
        """One application as the ResourceManager's REST API shows it."""
        return dict(_get(f"{self.resource_manager}/ws/v1/cluster/apps/{application_id}")["app"])

    def kill_application(self, application_id: str) -> None:
        """Ask the ResourceManager to end an application."""
        self.run("yarn", "application", "-kill", application_id)

    def nodes(self) -> list[dict[str, Any]]:
        """NodeManagers as the ResourceManager's REST API shows them."""
        return list((_get(f"{self.resource_manager}/ws/v1/cluster/nodes")["nodes"] or {}).get("node", []))

    def containers(self, application_id: str = "") -> list[dict[str, Any]]:
        """Containers that the NodeManagers have, as their REST API shows them, AM included."""
        found: list[dict[str, Any]] = []
        for node in self.nodes():
            if node["state"] == "RUNNING":
                answer = _get(f"http://{node['nodeHTTPAddress']}/ws/v1/node/containers")
                found += (answer["containers"] or {}).get("container", [])
        part = application_id.removeprefix("application_")
        return [container for container in found if part in container["id"]]

    def container_processes(self, container_id: str) -> list[psutil.Process]:
        """Processes of a container; a part of the id does, such as what all of one application have."""
        found = []
        for process in self.processes():
            try:
                if container_id in process.environ().get("CONTAINER_ID", ""):
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def container_logs(self, application_id: str) -> dict[str, str]:
        """What a running application's containers have written: ``<container id>/<file>`` → text."""
        texts = {}
        for file in sorted(self.folder.glob(f"logs/nodemanager-*-containers/{application_id}/*/*")):
            texts[f"{file.parent.name}/{file.name}"] = file.read_text(errors="replace")
        return texts

    def processes(self) -> list[psutil.Process]:
        """All processes but this one that have to do with the cluster: daemons, containers, clients."""
        folder = str(self.folder)
        found = []
        for process in all_processes():
            try:
                if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
                    continue
                known_by = [process.cwd(), *process.cmdline(), *process.environ().values()]
            except psutil.Error:
                continue
            if any(folder in text for text in known_by):
                found.append(process)
        return found


def _run(verb: str, folder: Path, *arguments: str) -> str:
    return _checked(
        [sys.executable, _SCRIPT, verb, "--dir", folder, *arguments], os.environ, PATIENCE.download_s
    )


def _checked(command: Sequence[str | Path], environment: Mapping[str, str], timeout_s: float) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(
        words, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s
    )
    said = f"{' '.join(words)}: exit status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-8000:]}"
    assert done.returncode == 0, said
    return done.stdout


def _get(url: str) -> dict[str, Any]:
    with requests.Session() as session:
        session.trust_env = False
        answer = session.get(url, headers={"Accept": "application/json"}, timeout=PATIENCE.answer_s)
    answer.raise_for_status()
    return dict(answer.json())

"""Java and the jars: finds the first, fetches the second once per machine."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hadoop.errors import NOT_INSTALLED, ClusterError
from hadoop.output import say

POM = Path(__file__).with_name("pom.xml")
_OLDEST_JAVA = 17
_INSTALL_JAVA = f"Java {_OLDEST_JAVA} or newer (Debian: apt-get install openjdk-17-jre-headless)"


def find_java() -> Path:
    """JAVA_HOME of the Java that runs the daemons: the variable, else the one on PATH.

    Raises
    ------
    ClusterError
        There is none, or it is too old for Hadoop 3.5.
    """
    named = os.environ.get("JAVA_HOME")
    found = Path(named, "bin/java") if named else Path(shutil.which("java") or "")
    if not os.access(found, os.X_OK) or found.is_dir():
        where = f"JAVA_HOME={named} holds no bin/java" if named else "java is not installed"
        raise ClusterError(f"{where}; install {_INSTALL_JAVA}", NOT_INSTALLED)
    found = found.resolve()
    banner = subprocess.run([found, "-version"], capture_output=True, text=True, errors="replace").stderr
    version = re.search(r'version "(\d+)', banner)
    if version is None or int(version[1]) < _OLDEST_JAVA:
        which = banner.splitlines()[0] if banner else "no working Java"
        raise ClusterError(f"{found} is {which}; install {_INSTALL_JAVA}", NOT_INSTALLED)
    return found.parent.parent


def version_of(name: str) -> str:
    """A version pinned in the pom: ``hadoop`` or ``zookeeper``."""
    found = re.search(rf"<{name}\.version>([^<]+)<", POM.read_text(encoding="utf-8"))
    assert found is not None, name
    return found[1]


def cache_dir() -> Path:
    """Where everything that outlives a cluster is kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "yarnflow", f"hadoop-{version_of('hadoop')}").absolute()


def fetch() -> Path:
    """The folder with ``lib/*.jar`` and ``webapps/``, made by Maven if it is not there yet."""
    what = f"Hadoop {version_of('hadoop')} and ZooKeeper {version_of('zookeeper')} (about 100 MB)"
    goals = ["dependency:copy-dependencies", "dependency:unpack"]
    return fetch_by_maven(POM, cache_dir(), what, goals, {"target/dependency": "lib", "webapps": "webapps"})


def fetch_by_maven(pom: Path, cache: Path, what: str, goals: list[str], kept: dict[str, str]) -> Path:
    """A folder below ``cache`` with what Maven's ``goals`` leave, made if it is not there yet.

    It carries the pom's hash, so a changed pom never meets the jars of another one.  ``kept`` tells which
    folders stay, and by what name.
    """
    wanted = cache / f"jars-{hashlib.sha256(pom.read_bytes()).hexdigest()[:12]}"
    if wanted.is_dir():
        return wanted
    maven = shutil.which("mvn")
    if maven is None:
        raise ClusterError("mvn is not installed; install it (Debian: apt-get install maven)", NOT_INSTALLED)
    cache.mkdir(parents=True, exist_ok=True)
    with locked(cache, "fetching the jars"):
        if not wanted.is_dir():
            say(f"once only: fetching {what} to {cache}; this takes a minute or two")
            _fetch(maven, pom, cache, wanted, goals, kept)
    return wanted


@contextlib.contextmanager
def locked(cache: Path, what: str) -> Iterator[None]:
    """Keep other runs from doing the same in the cache; ``what`` is for the one that has to wait."""
    with open(cache / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another run is {what} in {cache}; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(
    maven: str, pom: Path, cache: Path, wanted: Path, goals: list[str], kept: dict[str, str]
) -> None:
    for left in cache.glob(".new-*"):
        # of a run that was killed; the lock is ours
        shutil.rmtree(left, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix=".new-", dir=cache))
    try:
        shutil.copy(pom, work / "pom.xml")
        done = subprocess.run(
            [maven, "-q", "-B", *goals],
            cwd=work,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        if done.returncode != 0:
            tail = "\n".join(done.stdout.splitlines()[-15:])
            raise ClusterError(f"Maven could not fetch the jars; its last words:\n{tail}")
        result = work / "result"
        result.mkdir()
        for folder, name in kept.items():
            (work / folder).rename(result / name)
        result.rename(wanted)
    finally:
        shutil.rmtree(work, ignore_errors=True)

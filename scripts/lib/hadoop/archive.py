"""An archive of the daemons' loaded classes (Java's class-data sharing), which halves their start.

The first cluster on a machine notes which classes its daemons load; the archive made of that is kept beside
the jars and used by all daemons and client commands.  A JVM that cannot use it goes on without.
YARNFLOW_CDS=0 leaves all of this out.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

from hadoop import jars
from hadoop.layout import Layout, State
from hadoop.output import say

# suffix of a daemon's list of classes
LIST = ".classes"
_TIMEOUT_S = 600.0


def jars_path(folder: str) -> str:
    """The class path's part that an archive is bound to: all jars, in an order that never changes."""
    return ":".join(sorted(str(path) for path in Path(folder, "lib").glob("*.jar")))


def options(archive: str) -> list[str]:
    """What a JVM is told to use it; silent where it does not fit any more."""
    return [f"-XX:SharedArchiveFile={archive}", "-Xlog:disable", "-Xlog:all=error:stderr"] if archive else []


def existing(java_home: Path, folder: Path) -> str:
    """The archive for this Java and these jars; empty if there is none."""
    file = _file(java_home, folder)
    return str(file) if _is_enabled() and file.is_file() else ""


def is_wanted(state: State) -> bool:
    """Whether one has still to be made."""
    return _is_enabled() and not state.archive and not existing(Path(state.java_home), Path(state.jars))


def make(layout: Layout, state: State) -> str:
    """Make the archive from what a cluster's daemons have noted; empty if that failed."""
    say("once only: keeping loaded classes in an archive, so that clusters start faster (some 30 s)")
    wanted = _file(Path(state.java_home), Path(state.jars))
    classes: set[str] = set()
    for file in layout.run.glob(f"*{LIST}"):
        classes.update(line for line in file.read_text().splitlines() if not line.startswith("#"))
    names = sorted(line for line in classes if not line.startswith("@"))
    lambdas = sorted(line for line in classes if line.startswith("@lambda-proxy"))
    together = layout.run / "all-classes"
    together.write_text("\n".join([*names, *lambdas, ""]))
    with jars.locked(jars.cache_dir(), "making an archive of classes"):
        if wanted.is_file():
            return str(wanted)
        new = wanted.with_suffix(".new")
        command = [
            f"{state.java_home}/bin/java",
            "-Xshare:dump",
            "-XX:+UseSerialGC",
            f"-XX:SharedClassListFile={together}",
            f"-XX:SharedArchiveFile={new}",
            "-cp",
            jars_path(state.jars),
        ]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=_TIMEOUT_S)
            new.replace(wanted)
        except (OSError, subprocess.SubprocessError) as error:
            say(f"no archive was made ({error}); everything works without")
            return ""
        finally:
            new.unlink(missing_ok=True)
    return str(wanted)


def _is_enabled() -> bool:
    return os.environ.get("YARNFLOW_CDS", "1") != "0"


def _file(java_home: Path, folder: Path) -> Path:
    jvm = java_home / "lib/server/libjvm.so"
    try:
        known_by = f"{jvm} {jvm.stat().st_size} {jvm.stat().st_mtime_ns}"
    except OSError:
        known_by = str(jvm)
    return folder / f"classes-{hashlib.sha256(known_by.encode()).hexdigest()[:12]}.jsa"

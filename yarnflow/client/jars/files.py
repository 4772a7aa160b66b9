"""Jars that are named by path: seen to be there and of use."""

from __future__ import annotations

import filecmp
import os
import re
import zipfile
from collections.abc import Callable, Iterable, Mapping
from glob import glob
from pathlib import Path
from typing import Final

from yarnflow.config.hadoop.paths import with_file_system
from yarnflow.config.hadoop.variables import names_hadoop
from yarnflow.config.options import job
from yarnflow.core.jars.request import SPARK_JARS
from yarnflow.core.uris import file_uri, split_uri
from yarnflow.errors import JarError
from yarnflow.spark.jars.paths import check_path

_FLINK: Final = "org/apache/flink/"
_FLINKS_NAME: Final = "flink-"


def find_jars(files: Iterable[str], note: Callable[[str], None]) -> dict[str, list[str]]:
    """Where jars are; those of this machine are opened.

    Parameters
    ----------
    files : iterable of str
        Paths, patterns such as ``/opt/lib/*.jar``, and URIs.
    note : callable
        Told of each jar of Flink, which is left out, also one that is not there.

    Returns
    -------
    dict of str to list of str
        As it was named → addresses.

    Raises
    ------
    JarError
        One of this machine is not there, or is no jar.
    """
    found: dict[str, list[str]] = {}
    of_name: dict[str, Path] = {}
    for text in files:
        scheme, _, path = split_uri(text)
        if scheme not in ("", "file"):
            found[text] = [_of_cluster(text)]
            if "*" in path:
                raise JarError(f"jar {text}: patterns are for jars of this machine; name each jar")
            continue
        found[text] = []
        for name in _matching(path, text):
            file = Path(name).expanduser().absolute()
            if _of_use(file, text, note):
                same = of_name.setdefault(file.name, file)
                # of two copies one is enough
                file = same if same == file or filecmp.cmp(same, file, shallow=False) else file
                found[text].append(file_uri(file))
    return found


def find_class_paths(uris: Iterable[str], note: Callable[[str], None]) -> dict[str, list[str]]:
    """Where jars are that are on every machine, this one perhaps not among them.

    Returns
    -------
    dict of str to list of str
        As it was named → ``local:`` for files: each JVM opens its own.
    """
    found: dict[str, list[str]] = {}
    for text in uris:
        scheme, _, path = split_uri(text)
        if scheme not in ("", "file", "local"):
            found[text] = [_of_cluster(text)]
        elif not Path(path).is_absolute():
            raise JarError(f"class path {text} is not an absolute path; name the jar as all machines have it")
        else:
            of_use = not Path(path).is_file() or _of_use(Path(path), text, note)
            found[text] = [f"local:{path}"] if of_use else []
    return found


def _of_cluster(uri: str) -> str:
    """Return a URI as every machine understands it, as far as this one can tell."""
    return with_file_system(uri) if names_hadoop(os.environ) else uri


def present_jars(options: Mapping[str, str]) -> dict[str, str]:
    """Options without the jars that they name by paths at which this machine has nothing."""
    return {
        key: _present(text) if key in (SPARK_JARS, job.PIPELINE_JARS.key) else text
        for key, text in options.items()
    }


def _present(text: str) -> str:
    items = [item.strip() for item in re.split("[;,]", text)]
    return ",".join(item for item in items if _may_be_there(*split_uri(item)))


def _may_be_there(scheme: str, _authority: str, path: str) -> bool:
    return scheme not in ("", "file") or os.path.exists(path) or bool(glob(path))


def contents_of(jars: Iterable[str]) -> dict[str, str]:
    """Address of a jar of this machine → a text that changes when somebody writes to it."""
    found = {}
    for jar in jars:
        scheme, _, path = split_uri(jar)
        if scheme in ("file", "local") and Path(path).is_file():
            status = os.stat(path)
            found[jar] = f"{status.st_size}-{status.st_mtime_ns}"
    return found


def _is_pattern(path: str) -> bool:
    return any(sign in path for sign in "*?[")


def _matching(path: str, said: str) -> list[str]:
    expanded = os.path.expanduser(path)
    if not _is_pattern(path) or os.path.exists(expanded):
        return [path]
    names = sorted(glob(expanded))
    if not names:
        raise JarError(f"no jar matches {said}{_looked_in(path)}; check the path")
    return names


def _looked_in(path: str) -> str:
    return "" if Path(path).is_absolute() else f" (looked in {Path.cwd()})"


def _of_use(file: Path, said: str, note: Callable[[str], None]) -> bool:
    check_path(file, f"jar {said}", "move or rename the jar")
    try:
        with zipfile.ZipFile(file) as jar:
            names = jar.namelist()
    except FileNotFoundError:
        if file.name.startswith(_FLINKS_NAME):
            # programs keep the path of somebody's machine, as Flink's examples do
            _left_out(file, note)
            return False
        if os.environ.get("CONTAINER_ID"):
            raise JarError(
                f"jar {said} does not exist in the container of the JobManager, where the program runs; "
                "ship it with --jars, or name it by a URI that the cluster can read"
            ) from None
        raise JarError(f"jar {said} does not exist{_looked_in(said)}; check the path") from None
    except (OSError, zipfile.BadZipFile) as error:
        raise JarError(f"jar {said} cannot be read as a jar: {error}; check the file") from None
    if any(name.startswith(_FLINK) for name in names):
        _left_out(file, note)
        return False
    return True


def _left_out(file: Path, note: Callable[[str], None]) -> None:
    note(f"{file.name} is a jar of Flink and is left out: jobs run on Spark, with Spark's connectors.")

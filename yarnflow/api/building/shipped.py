"""Files of the program that its functions need where they run.

Decides under which names they travel; read when the program names them.  Flink counterpart: PyFlink's
``PythonDependencyUtils``.
"""

from __future__ import annotations

import importlib.metadata
import io
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from yarnflow.errors import GraphError
from yarnflow.graph.job_graph import ARCHIVES, PYTHON_FILES

#: a line that names a package, not an option or an address, and without a condition behind ``;``
_REQUIRED: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?![^#]*(?:://|;))")
#: all of it is in the submission, which must fit into one message
_MAX_BYTES: Final = 48 * 1024 * 1024


def python_file(path: str, asked_by: str) -> tuple[str, bytes]:
    """A module, an archive of modules or a directory of them, for the search path of the workers.

    Parameters
    ----------
    asked_by : str
        What asks for it, for messages: ``job.py:3: add_python_file()``, ``-pyfs``.

    Returns
    -------
    tuple of str and bytes
        Name in the submission, and content; a directory becomes an archive, without hidden entries.

    Raises
    ------
    GraphError
        It cannot be read, or is too large.
    """
    file = Path(path)
    if file.is_dir():
        return f"{PYTHON_FILES}{file.resolve().name}.zip", _zipped(file, asked_by)
    content = _read(file, asked_by)
    name = file.name
    if not name.endswith((".py", ".zip", ".egg")) and zipfile.is_zipfile(io.BytesIO(content)):
        # such as a wheel
        name += ".zip"
    return PYTHON_FILES + name, content


def add_file(files: dict[str, bytes], added: tuple[str, bytes], asked_by: str) -> None:
    """Add to the files of a job what :func:`python_file` or :func:`archive` gave; the same file twice is one.

    Raises
    ------
    GraphError
        Another one has its name, or all together are too large.
    """
    name, content = added
    if files.get(name, content) != content:
        raise GraphError(f"{asked_by}: two different files would be shipped as {name}; rename one")
    check_size({**files, name: content}, asked_by)
    files[name] = content


def check_size(files: Mapping[str, bytes], asked_by: str) -> None:
    """See that the files of a job fit into its submission.

    Raises
    ------
    GraphError
    """
    _check_size("all files of the job together", sum(map(len, files.values())), asked_by)


def archive(path: str, target_dir: str | None, origin: str) -> tuple[str, bytes]:
    """An archive that the workers unpack; see :func:`python_file`."""
    file = Path(path)
    target = target_dir or file.name
    if "/" in target or target in (".", ".."):
        raise GraphError(f"{origin}: add_python_archive(): target directory {target!r} must be a plain name")
    return f"{ARCHIVES}{target}/{file.name}", _read(file, f"{origin}: add_python_archive()")


def check_requirements(path: str, origin: str) -> None:
    """See that the packages a requirements file names are installed here, whatever their versions.

    Packages that are needed only under a condition are not looked for.

    Raises
    ------
    GraphError
        One is not, or the file cannot be read.
    """
    text = _read(Path(path), f"{origin}: set_python_requirements()").decode(errors="replace")
    for line in text.splitlines():
        name = _REQUIRED.match(line.strip())
        if name is None:
            continue
        try:
            importlib.metadata.distribution(name[0])
        except importlib.metadata.PackageNotFoundError:
            raise GraphError(
                f"{origin}: set_python_requirements(): {path} names {name[0]}, which is not installed "
                f"here; install "
                "it, and pack this environment for the workers by: yarnflow env pack"
            ) from None


def _read(file: Path, what: str) -> bytes:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise GraphError(f"{what}: {file} cannot be read: {error.strerror}") from None
    _check_size(str(file), len(content), what)
    return content


def _check_size(carried: str, size_bytes: int, what: str) -> None:
    if size_bytes > _MAX_BYTES:
        raise GraphError(
            f"{what}: {carried}: {size_bytes} bytes or more, and a job carries at most {_MAX_BYTES}; "
            "ship it by yarnflow submit -pyarch, or read it from the cluster's file system"
        )


def _zipped(directory: Path, what: str) -> bytes:
    """The files of a directory as an archive; the same bytes for the same files.

    Hidden ones stay here: they are no modules, and may be secrets or a whole history.
    """
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as made:
        for file in sorted(directory.rglob("*")):
            inside = file.relative_to(directory)
            hidden = any(part.startswith(".") or part == "__pycache__" for part in inside.parts)
            if not hidden and file.is_file():
                made.writestr(zipfile.ZipInfo(str(inside)), _read(file, what), zipfile.ZIP_DEFLATED)
                _check_size(str(directory), written.tell(), what)
    return written.getvalue()

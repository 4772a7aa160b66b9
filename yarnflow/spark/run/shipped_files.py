"""What a job's functions need beside themselves, brought to the workers by Spark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyspark import SparkContext

from yarnflow.errors import InvalidOption
from yarnflow.graph.job_graph import ARCHIVES, PYTHON_FILES


def ship_files(context: SparkContext, files: Mapping[str, bytes], directory: Path) -> None:
    """Have every task of the context find the files of a job graph.

    Parameters
    ----------
    files : mapping of str to bytes
        As in :attr:`yarnflow.graph.job_graph.JobGraph.files`.
    directory : Path
        Where they are written for Spark to take them from; what is there already as it is to be stays,
        since Spark may be sending it.

    Raises
    ------
    InvalidOption
        A name leads out of the directory.
    """
    root = directory.resolve()
    for name, content in files.items():
        target = (root / name).resolve()
        if not target.is_relative_to(root):
            raise InvalidOption(f"file name {name!r} of the submission leads out of the job's directory")
        target.parent.mkdir(parents=True, exist_ok=True)
        _write_whole(target, content)
        if name.startswith(PYTHON_FILES):
            context.addPyFile(str(target))
        elif name.startswith(ARCHIVES):
            # in the working directory of an executor, which is that of its workers
            context.addArchive(f"{target}#{target.parent.name}")


def _write_whole(target: Path, content: bytes) -> None:
    """Whoever reads the file meanwhile reads all of what was or all of what is."""
    if target.is_file() and target.read_bytes() == content:
        return
    aside = target.with_name(f".{target.name}.tmp")
    aside.write_bytes(content)
    aside.replace(target)

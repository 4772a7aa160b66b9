"""Whether workers may unpickle what is in a state.

State that others than this cluster or its user could have written holds plain values only, unless the user
vouches for it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from pyspark.sql import SparkSession

from yarnflow.core.checkpoint.manifest import METADATA_FILE, SavepointMetadata
from yarnflow.core.checkpoint.messages import CheckpointKind
from yarnflow.core.checkpoint.ownership import owned_by_another, writable_by_others
from yarnflow.core.checkpoint.signature import is_signed
from yarnflow.core.messages import ProgramKind
from yarnflow.errors import StateNotTrusted
from yarnflow.spark.checkpoints.restoring.parts import Part
from yarnflow.spark.connectors.sources import SOURCES_DIRECTORY
from yarnflow.spark.file_owners import FileOwners
from yarnflow.spark.hadoop_files import HadoopFiles
from yarnflow.spark.run.query_plan import END_OF_INPUT
from yarnflow.spark.state.frames import classes_in_state

#: files of sources that hold no objects; no source reads others of them than by these names
_PLAIN_OF_SOURCE: Final = re.compile(r"\w+/(kafka\.json|returning\.json|\d+\.arrow)")
#: classes a message names
_NAMED: Final = 3


def doubt_of(
    files: HadoopFiles,
    root: str,
    manifest: SavepointMetadata,
    content: bytes,
    parts: list[Part],
    job_dir: str,
    key: bytes,
) -> str:
    """Why workers may not unpickle what is in it: a clause; empty = they may."""
    if manifest.program.kind != ProgramKind.GRAPH.value:
        return ""
    if manifest.kind is CheckpointKind.SAVEPOINT:
        whole = all(file.checksum for file in manifest.files)
        if whole and is_signed(content, key):
            return ""
    qualified, owners = files.qualified, FileOwners(files)
    trees: dict[str, tuple[str, ...]] = {qualified(root): (METADATA_FILE,)}
    trees |= {qualified(part.source): part.paths for part in parts}
    beside = qualified(_parent(_parent(root))) == qualified(_parent(job_dir))
    if manifest.kind is not CheckpointKind.SAVEPOINT and beside:
        # where this cluster's jobs keep their state, which they unpickle after every restart
        return owned_by_another(owners, trees)
    return writable_by_others(owners, trees)


def check_plain(spark: SparkSession, root: str, directory: str, doubt: str) -> None:
    """Of a copy, which nobody else can change, before it is in its place."""
    found = classes_in_state(spark, directory)
    if found:
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        raise StateNotTrusted(
            f"the state in {root} holds objects of {', '.join(found[:_NAMED])}{more}, and others may "
            f"have written it to run anything: this cluster has not signed it, and {doubt}; start "
            "with --trust-state if you know who did"
        )


def without_elements(part: Part) -> Part:
    """Without pickled elements and readers, which the program brings itself."""
    if part.name == SOURCES_DIRECTORY:
        # messages that were received, and offsets; whoever wrote it may have called objects anything else
        kept = tuple(path for path in part.paths if _PLAIN_OF_SOURCE.fullmatch(path))
    else:
        kept = tuple(path for path in part.paths if not path.startswith(f"{END_OF_INPUT}/"))
    return replace(part, paths=kept, expected={path: part.expected[path] for path in kept if part.expected})


def _parent(path: str) -> str:
    return path.rpartition("/")[0]

"""The manifest of a savepoint or checkpoint, read where a user says that one is.

Never decides what is in it.
"""

from __future__ import annotations

from yarnflow.core.checkpoint.manifest import METADATA_FILE, SavepointMetadata, from_bytes
from yarnflow.errors import SavepointNotFound
from yarnflow.spark.hadoop_files import HadoopFiles


def read_manifest(files: HadoopFiles, path: str) -> tuple[str, SavepointMetadata]:
    """The directory and the manifest of a savepoint or checkpoint, named by either.

    Raises
    ------
    SavepointNotFound
    SavepointInvalid
    """
    root, content = manifest_content(files, path)
    return root, from_bytes(content, f"{root}/{METADATA_FILE}")


def manifest_content(files: HadoopFiles, path: str) -> tuple[str, bytes]:
    """The directory, and the text of the manifest.  Raises SavepointNotFound."""
    root = path.rstrip("/").removesuffix(f"/{METADATA_FILE}")
    where = f"{root}/{METADATA_FILE}"
    if not files.exists(where):
        raise SavepointNotFound(
            f"there is no savepoint or checkpoint in {root}: it has no {METADATA_FILE}; check the path"
        )
    return root, files.read(where)

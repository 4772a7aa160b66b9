"""Many files from one directory to another, several at a time, with their checksums.

The bytes stay in the driver's JVM: Hadoop's streams read and write them, and a SHA-256 is computed
on the way: Hadoop's own checksums cannot be compared between file systems, and vouch for nothing.
Flink counterpart: ``DuplicatingFileSystem`` and the copying of savepoints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from py4j.protocol import Py4JJavaError

from yarnflow.errors import StorageError
from yarnflow.spark.hadoop_files import HadoopFiles, java_cause

_THREADS: Final = 8
_BUFFER_BYTES: Final = 128 * 1024


class SourceFileGone(Exception):
    """A file that was to be copied is not there any more; the message is its path."""


@dataclass(frozen=True, slots=True)
class CopiedFile:
    """What one copy was."""

    length: int
    #: ``sha256:`` and 64 hexadecimal digits
    checksum: str


def copy_files(
    files: HadoopFiles,
    paths: Mapping[str, str],
    check: Callable[[], None] = lambda: None,
    done: Callable[[str], None] = lambda copy: None,
) -> dict[str, CopiedFile]:
    """Copy files; what is at a target already is replaced.

    Parameters
    ----------
    files : HadoopFiles
    paths : mapping of str to str
        Source → target, full paths.
    check : callable
        Called before each file; what it raises ends the copying.
    done : callable
        Called with each target once it is written.

    Returns
    -------
    dict
        By source.

    Raises
    ------
    SourceFileGone
    StorageError
    """
    sources: Sequence[str] = list(paths)

    def copy(source: str) -> CopiedFile:
        check()
        copied = _copy(files, source, paths[source])
        done(paths[source])
        return copied

    with ThreadPoolExecutor(_THREADS, thread_name_prefix="copy") as pool:
        futures = [pool.submit(copy, source) for source in sources]
        try:
            return {source: future.result() for source, future in zip(sources, futures, strict=True)}
        except BaseException:
            for future in futures:
                future.cancel()
            raise


def _copy(files: HadoopFiles, source: str, target: str) -> CopiedFile:
    try:
        stream = files.system(source).open(files.path(source))
        digest = files.java_class("java.security.MessageDigest").getInstance("SHA-256")
        checked = files.java_class("java.security.DigestInputStream")(stream, digest)
        system, path = files.system(target), files.path(target)
        # closes both, also when it fails
        copier = files.java_class("org.apache.hadoop.io.IOUtils")
        copier.copyBytes(checked, system.create(path, True), _BUFFER_BYTES, True)
        return CopiedFile(int(system.getFileStatus(path).getLen()), f"sha256:{bytes(digest.digest()).hex()}")
    except Py4JJavaError as error:
        cause = java_cause(error)
        if "FileNotFoundException" in cause or "NoSuchFileException" in cause:
            raise SourceFileGone(source) from error
        raise StorageError(f"cannot copy {source} to {target}: {cause}") from error

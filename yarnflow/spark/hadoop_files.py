"""Small files and renames through Hadoop's ``FileSystem`` in the driver's JVM.

One way to ``file:``, ``hdfs:`` and whatever else the cluster knows.  Decides that local files
get no ``.crc`` beside them.  Never moves bulk data: Spark's tasks do that.
Flink counterpart: ``org.apache.flink.core.fs.FileSystem``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from yarnflow.config.hadoop.paths import names_file_system, with_file_system
from yarnflow.config.held_directories import delete_tree
from yarnflow.core.uris import split_uri
from yarnflow.errors import FileMissing, StateDamaged, StorageError
from yarnflow.spark.java_classes import is_instance, java_class

#: how Hadoop writes a file's status
_STATUS: Final = re.compile(r"path=(.*?); isDirectory=(true|false);(?: length=(\d+);)?", re.DOTALL)

#: how what Spark compresses by LZ4 begins
_LZ4: Final = b"LZ4Block"
_READ_BYTES: Final = 128 * 1024
#: directories that are listed at a time
_LISTINGS: Final = 8
#: of a job one of whose files is damaged
WAYS_OUT: Final = (
    "put it back from a copy, start the job from a savepoint (-s PATH), or without its state (--restore none)"
)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """One entry of a directory."""

    name: str
    is_directory: bool
    #: bytes; 0 of a directory
    length: int


class HadoopFiles:
    """Files of the file system that a path names.

    Parameters
    ----------
    spark : SparkSession
        The driver's session; its Hadoop configuration applies.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._gateway: Any = spark.sparkContext._gateway
        self._configuration: Any = spark.sparkContext._jsc.hadoopConfiguration()
        self._path = self.java_class("org.apache.hadoop.fs.Path")
        #: scheme and authority → the ``FileSystem`` of local files, which cannot be closed
        self._raw_systems: dict[tuple[str, str], Any] = {}
        #: scheme and authority
        self._without_checksums: set[tuple[str, str]] = set()

    def java_class(self, name: str) -> Any:
        """A class of the driver's JVM, by its full name."""
        return java_class(self._gateway, name)

    def named(self, path: str) -> str:
        """Return a path for Spark: one of HDFS that does not say of which, where Hadoop could not tell."""
        if names_file_system(path) or str(self._configuration.get("fs.defaultFS")).startswith("hdfs:"):
            return path
        return with_file_system(path)

    def path(self, path: str) -> Any:
        """The Java ``Path``."""
        return self._path(self.named(path))

    def system(self, path: str) -> Any:
        """The Java ``FileSystem`` of a path, without checksum files."""
        place = split_uri(path)[:2]
        raw = self._raw_systems.get(place)
        if raw is not None:
            return raw
        try:
            # Hadoop keeps them; kept here, too, one would stay closed that a program of the user has closed
            system = self.path(path).getFileSystem(self._configuration)
        except Py4JError as error:
            raise StorageError(f"no file system for {path}: {java_cause(error)}") from error
        if place in self._without_checksums:
            return system
        if is_instance(self._gateway, system, "org.apache.hadoop.fs.ChecksumFileSystem"):
            return self._raw_systems.setdefault(place, system.getRawFileSystem())
        self._without_checksums.add(place)
        return system

    def qualified(self, path: str) -> str:
        """The path with scheme and authority."""
        return str(self.system(path).makeQualified(self.path(path)).toString())

    def exists(self, path: str) -> bool:
        """Whether a file or directory is there."""
        return bool(self.call(path, "exists"))

    def is_file(self, path: str) -> bool:
        """Whether the path is a file."""
        return self.exists(path) and bool(self.call(path, "getFileStatus").isFile())

    def matches(self, pattern: str) -> list[str]:
        """Paths that match a glob; the path itself if it is none and exists."""
        found = self.call(pattern, "globStatus")
        return [str(status.getPath().toString()) for status in (found or ())]

    def delete(self, path: str) -> None:
        """Remove a file or tree; nothing if it is not there."""
        if self._is_raw_local(path):
            self._delete_local(split_uri(self.qualified(path))[2])
        else:
            self.call(path, "delete", True)

    def _is_raw_local(self, path: str) -> bool:
        return is_instance(self._gateway, self.system(path), "org.apache.hadoop.fs.RawLocalFileSystem")

    def _delete_local(self, path: str) -> None:
        # Java goes by paths, in which others may exchange a directory meanwhile
        try:
            delete_tree(path)
        except StorageError:
            raise
        except OSError as error:
            raise StorageError(f"delete of {path} failed: {error.strerror}") from error

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents; raises StorageError when the file system refuses."""
        if not self.call(path, "mkdirs"):
            raise StorageError(f"cannot make the directory {path}; check the path and its permissions")

    def files_below(self, path: str) -> list[tuple[str, int]]:
        """Every file below a directory: path relative to it, size in bytes; hidden ones left out."""
        if not self.exists(path):
            return []
        root = self.qualified(path).rstrip("/")
        found = []
        entries = self.call(path, "listFiles", True)
        while entries.hasNext():
            status = entries.next()
            relative = str(status.getPath().toString())[len(root) + 1 :]
            if not any(_is_hidden(part) for part in relative.split("/")):
                found.append((relative, int(status.getLen())))
        return sorted(found)

    def children(self, path: str) -> list[str]:
        """Names of a directory's entries; empty if it is not there."""
        return sorted(entry.name for entry in self.entries(path))

    def entries(self, path: str, is_there: bool = False) -> list[DirectoryEntry]:
        """A directory's entries, in a few calls into the JVM however many; empty if it is not there.

        Parameters
        ----------
        is_there : bool
            It was a moment ago: else that is asked first, as PySpark asks dozens of questions about an error
            of Java.
        """
        if not is_there and not self.exists(path):
            return []
        try:
            statuses = self.system(path).listStatus(self.path(path))
        except Py4JJavaError as error:
            if "FileNotFoundException" in java_cause(error):
                return []
            raise StorageError(f"listStatus of {path} failed: {java_cause(error)}") from error
        text = str(self.java_class("scala.runtime.ScalaRunTime").stringOf(statuses))
        return [
            DirectoryEntry(match[1].rpartition("/")[2], match[2] == "true", int(match[3] or 0))
            for match in _STATUS.finditer(text)
        ]

    def tree(self, path: str, left_out: Collection[str] = ()) -> dict[str, int]:
        """Every file below a directory: path relative to it → length; hidden ones (``.…``) left out.

        Directories of one level are listed several at a time: on HDFS each is a call of its own.

        Parameters
        ----------
        left_out : collection of str
            Names of directories that are not looked into.
        """

        def listed(prefix: str) -> list[DirectoryEntry]:
            return self.entries(f"{path}/{prefix}".rstrip("/"), is_there=bool(prefix))

        found: dict[str, int] = {}
        level = [""]
        with ThreadPoolExecutor(_LISTINGS, thread_name_prefix="list") as pool:
            while level:
                # a thread has a connection of its own to the JVM, which one directory is not worth
                entries = list((pool.map if len(level) > 1 else map)(listed, level))
                below: list[str] = []
                for prefix, names in zip(level, entries, strict=True):
                    for entry in names:
                        if entry.name.startswith("."):
                            continue
                        if not entry.is_directory:
                            found[f"{prefix}{entry.name}"] = entry.length
                        elif entry.name not in left_out:
                            below.append(f"{prefix}{entry.name}/")
                level = below
        return found

    def modified_ms(self, path: str) -> int:
        """When a file was last written."""
        return int(self.call(path, "getFileStatus").getModificationTime())

    def rename(self, source: str, target: str) -> None:
        """Move a file; raises StorageError when the file system refuses."""
        if not self.call(source, "rename", self.path(target)):
            raise StorageError(f"cannot rename {source} to {target}; check permissions and quota")

    def read(self, path: str) -> bytes:
        """A small file's content."""
        stream = self.call(path, "open")
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def parsed(self, path: str, parse: Callable[[str], T], remedy: str = WAYS_OUT) -> T:
        """A small file of the job's own, as a function understands its text.

        Parameters
        ----------
        remedy : str
            What is to be done where it does not.

        Raises
        ------
        StateDamaged
            Nobody can understand it, and so it will be at the next attempt.
        """
        content = self.read(path)
        try:
            return parse(content.decode())
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            said = f"cannot be understood ({type(error).__name__}: {error})" if content else "is empty"
            raise StateDamaged(f"{path} is damaged: it {said}; {remedy}") from error

    def fault_of(self, path: str, compressed: bool = False) -> str:
        """What is wrong with a file by the checksums that its file system keeps; empty = nothing.

        It is read wholly, in the JVM.

        Parameters
        ----------
        compressed : bool
            Spark may have compressed it, as it does with state: LZ4 has checksums of its own, which count.

        Raises
        ------
        FileMissing
        StorageError
            It cannot be read now.
        """
        try:
            # not of :meth:`system`, which leaves checksums out
            stream = self.path(path).getFileSystem(self._configuration).open(self.path(path))
            if compressed and bytes(stream.readNBytes(len(_LZ4))) == _LZ4:
                stream.seek(0)
                codec = self.java_class("org.apache.spark.io.LZ4CompressionCodec")
                conf = self.java_class("org.apache.spark.SparkConf")(False)
                stream = codec(conf).compressedInputStream(stream)
            nothing = self.java_class("java.io.OutputStream").nullOutputStream()
            self.java_class("org.apache.hadoop.io.IOUtils").copyBytes(stream, nothing, _READ_BYTES, True)
        except Py4JJavaError as error:
            cause = java_cause(error)
            if "ChecksumException" in cause:
                return "does not fit its checksum"
            if "Stream is corrupted" in cause or "EOFException" in cause:
                return "is not what was compressed"
            if "FileNotFoundException" in cause or "NoSuchFileException" in cause:
                raise FileMissing(f"{path} is missing") from error
            if "BlockMissingException" in cause and self._is_corrupt(path):
                return "has a block of which all replicas are corrupt"
            raise StorageError(f"cannot read {path}: {cause}") from error
        return ""

    def _is_corrupt(self, path: str) -> bool:
        """Whether HDFS knows of replicas that are there and damaged, rather than of none."""
        status = self.call(path, "getFileStatus")
        found = self.system(path).getFileBlockLocations(status, 0, status.getLen())
        return any(bool(block.isCorrupt()) for block in found)

    def write(self, path: str, content: bytes) -> None:
        """Write a small file so that it is there wholly or not at all."""
        directory, _, name = path.rpartition("/")
        temporary = f"{directory}/.{name}.tmp"
        self.make_directory(directory)
        stream = self.call(temporary, "create", True)
        try:
            stream.write(content)
        finally:
            stream.close()
        self._replace(temporary, path)

    def _replace(self, source: str, target: str) -> None:
        """Move a file to where another may be, which is there until this one is."""
        if not self.exists(target) or self.qualified(target).startswith("file:"):
            # local file systems rename over what is there
            self.rename(source, target)
            return
        choices = self.java_class("org.apache.hadoop.fs.Options$Rename")
        options = self._gateway.new_array(choices, 1)
        options[0] = choices.OVERWRITE
        contexts = self.java_class("org.apache.hadoop.fs.FileContext")
        try:
            context = contexts.getFileContext(self.path(target).toUri(), self._configuration)
            context.rename(self.path(source), self.path(target), options)
        except Py4JJavaError as error:
            raise StorageError(f"cannot rename {source} to {target}: {java_cause(error)}") from error

    def call(self, path: str, method: str, *arguments: Any) -> Any:
        """A method of the path's ``FileSystem``; raises StorageError."""
        try:
            return getattr(self.system(path), method)(self.path(path), *arguments)
        except Py4JJavaError as error:
            raise StorageError(f"{method} of {path} failed: {java_cause(error)}") from error


def _is_hidden(name: str) -> bool:
    """As Spark sees it: ``_day=1`` is a partition."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def java_cause(error: Exception) -> str:
    """What a call into Java failed with, one line."""
    java = getattr(error, "java_exception", None)
    return str(java.toString() if java is not None else error).splitlines()[0]

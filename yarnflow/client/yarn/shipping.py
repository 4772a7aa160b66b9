"""Files that go into the containers, and their way to HDFS.

Each file is known by its content: what is there already is not sent again.  A plan is made and
checked first, without HDFS, so that a mistake costs nothing; then all files go up side by side.
Flink counterpart: ``YarnApplicationFileUploader``.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from yarnflow.client.background import in_background
from yarnflow.client.yarn import specification as names
from yarnflow.client.yarn.distribution import DISTRIBUTION_NAME, distribution, zip_bytes
from yarnflow.client.yarn.services import YarnServices, yarn_services
from yarnflow.client.yarn.specification import PythonEnvironment
from yarnflow.config.configuration import Configuration
from yarnflow.config.directories import cache_directory
from yarnflow.config.option import AnyOption
from yarnflow.config.options import cluster as cluster_options
from yarnflow.config.options import yarn
from yarnflow.core.jars.request import jars_of, moved
from yarnflow.core.messages import JobSubmission
from yarnflow.core.uris import split_uri
from yarnflow.core.yarn import LocalResource, Visibility
from yarnflow.errors import InvalidOption, ProgramNotFound
from yarnflow.staging.cache import ContentCache
from yarnflow.staging.layout import DEPLOYMENT_FILE, SECRET_FILE, SUBMISSION_FILE, StagingLayout, prepare
from yarnflow.yarn.master_jar import SKEIN_JAR_NAME, master_jar

#: endings by which YARN knows how to unpack
ARCHIVE_ENDINGS: Final = (".tar.gz", ".tgz", ".tar", ".zip", ".jar")
#: files of a script that travel inside its submission
MAX_INLINE_BYTES: Final = 8 << 20
_RESERVED: Final = frozenset({DEPLOYMENT_FILE, SECRET_FILE, SUBMISSION_FILE, "cluster"})
#: names end up in shell text, in YARN's links and in PYTHONPATH
_NAME: Final = re.compile(r"[A-Za-z0-9_@%+=.,-]+")


@dataclass(frozen=True, slots=True)
class ShippedFile:
    """One file or archive for the containers."""

    #: in the working directory
    name: str
    #: as YARN sees it; the ending decides how an archive is unpacked
    file_name: str
    archive: bool = False
    local: Path | None = None
    content: bytes | None = field(default=None, repr=False)
    uri: str = ""
    #: the master gets it, TaskManagers do not
    master_only: bool = False
    #: nothing of the user's or the cluster's own is in it, so everybody may read it on HDFS
    shared: bool = False

    def planned(self, layout: StagingLayout, fs_uri: str) -> LocalResource:
        """Where it would be after an upload; for ``--dry-run``."""
        if self.uri:
            return LocalResource(self.uri, self.archive, Visibility.PRIVATE)
        if self.content is not None:
            digest = hashlib.sha256(self.content).hexdigest()
        else:
            assert self.local is not None
            with self.local.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        return LocalResource(
            fs_uri + layout.cached_file(digest, self.file_name), self.archive, Visibility.PRIVATE
        )


def plan_files(
    services: YarnServices,
    environment: PythonEnvironment,
    program_files: Sequence[str] = (),
) -> list[ShippedFile]:
    """All files of an application, in the order in which they should go up.

    Parameters
    ----------
    environment : PythonEnvironment
    program_files : sequence of str
        A program that runs in the master, and its files.

    Raises
    ------
    InvalidOption
        A file that is not there, or two of one name.
    """
    configuration = services.configuration
    files: list[ShippedFile] = []
    if environment.archive is not None:
        # the largest first
        files.append(
            ShippedFile(
                names.ENVIRONMENT,
                environment.archive.name,
                archive=True,
                local=environment.archive,
                shared=True,
            )
        )
    elif environment.archive_uri:
        files.append(_remote(environment.archive_uri, names.ENVIRONMENT, archive=True))
    files.append(
        ShippedFile(names.DISTRIBUTION, DISTRIBUTION_NAME, archive=True, local=distribution(), shared=True)
    )
    jar = master_jar(cache_directory())
    files.append(ShippedFile(SKEIN_JAR_NAME, SKEIN_JAR_NAME, local=jar, master_only=True, shared=True))
    settings = [(path.name, path.read_bytes()) for path in services.conf.files()]
    files.append(
        ShippedFile(
            names.HADOOP_CONF, f"{names.HADOOP_CONF}.zip", archive=True, content=zip_bytes(settings)
        )
    )
    if configuration.is_set(cluster_options.LOG_CONFIG_FILE):
        log_settings = _log_settings(configuration)
        files.append(ShippedFile(names.LOG_SETTINGS, names.LOG_SETTINGS, content=log_settings))
    files += _listed(configuration, yarn.SHIP_FILES, archive=False)
    files += _listed(configuration, yarn.SHIP_ARCHIVES, archive=True)
    for path in program_files:
        files.append(_program_file(path))
    _check_names(files)
    return files


def _log_settings(configuration: Configuration) -> bytes:
    from yarnflow.config.log_file import read_log_file

    path = Path(configuration.get(cluster_options.LOG_CONFIG_FILE)).expanduser()
    read_log_file(path)
    return path.read_bytes()


def _listed(configuration: Configuration, option: AnyOption, *, archive: bool) -> Iterable[ShippedFile]:
    for item in re.split("[;,]", configuration.get(option)):
        text, _, alias = item.strip().partition("#")
        if not text:
            continue
        if urlsplit(text).scheme not in ("", "file"):
            yield _remote(text, alias, archive=archive)
            continue
        path = Path(urlsplit(text).path if text.startswith("file:") else text).expanduser()
        if not path.is_file():
            found = "is a directory; make an archive of it" if path.is_dir() else "does not exist"
            raise InvalidOption(f"{option.key}: {text} {found}")
        if archive and not path.name.endswith(ARCHIVE_ENDINGS):
            raise InvalidOption(f"{option.key}: {text}: YARN unpacks {', '.join(ARCHIVE_ENDINGS)} only")
        yield ShippedFile(alias or path.name, path.name, archive=archive, local=path.absolute())


def _remote(uri: str, alias: str, *, archive: bool) -> ShippedFile:
    name = urlsplit(uri).path.rpartition("/")[2]
    return ShippedFile(alias or name, name, archive=archive, uri=uri)


def _program_file(path: str) -> ShippedFile:
    file = Path(path)
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ProgramNotFound(f"file {path} cannot be read: {error.strerror}") from error
    return ShippedFile(file.name, file.name, content=content, master_only=True)


def _check_names(files: Iterable[ShippedFile]) -> None:
    seen: set[str] = set(_RESERVED)
    for file in files:
        if not _NAME.fullmatch(file.name) or not _NAME.fullmatch(file.file_name):
            raise InvalidOption(
                f"file {file.name!r} cannot be shipped under this name; use letters, digits and -_.+=@ only"
            )
        if file.name in seen:
            raise InvalidOption(
                f"two files would be called {file.name} in the containers; give one another name: path#name"
            )
        seen.add(file.name)


class Uploads:
    """Uploads of one submit that run in the background; made by :func:`start_uploads`."""

    def __init__(
        self, files: Sequence[ShippedFile], futures: Sequence[Future[tuple[LocalResource, int]]]
    ) -> None:
        self._pairs = list(zip(files, futures, strict=True))

    def resources(self) -> tuple[dict[str, LocalResource], dict[str, LocalResource]]:
        """Wait for all; files of every container, and those of the master only.

        Raises
        ------
        StorageError
            An upload failed, or a local file cannot be read any more.
        """
        everywhere: dict[str, LocalResource] = {}
        master: dict[str, LocalResource] = {}
        for file, future in self._pairs:
            (master if file.master_only else everywhere)[file.name] = future.result()[0]
        return everywhere, master

    @property
    def uploaded_bytes(self) -> int:
        """What had to be sent; 0 when all was there."""
        return sum(future.result()[1] for _, future in self._pairs)


def start_uploads(files: Sequence[ShippedFile], cache: ContentCache) -> Uploads:
    """Begin to upload; returns at once."""
    return Uploads(files, [in_background(_uploader(file, cache), f"upload-{file.name}") for file in files])


def _uploader(file: ShippedFile, cache: ContentCache) -> Callable[[], tuple[LocalResource, int]]:
    def upload() -> tuple[LocalResource, int]:
        if file.uri:
            return LocalResource(file.uri, file.archive, Visibility.PRIVATE), 0
        if file.content is not None:
            cached = cache.put_bytes(
                file.content, file.file_name, archive=file.archive, shared=file.shared
            )
        else:
            assert file.local is not None
            cached = cache.put(file.local, file.file_name, archive=file.archive, shared=file.shared)
        return cached.resource, cached.uploaded_bytes

    return upload


def offload_files(submission: JobSubmission, cache: Callable[[], ContentCache]) -> JobSubmission:
    """Let a script's large files travel over HDFS instead of inside the submission.

    Spark fetches them on driver and executors as it does those of ``spark-submit --py-files``.
    """
    if not submission.script_argv:
        return submission
    program = submission.script_argv[0]
    others = {name: content for name, content in submission.files.items() if name != program}
    if sum(map(len, others.values())) <= MAX_INLINE_BYTES:
        return submission
    store = cache()
    uris = [store.put_bytes(content, name, shared=False).resource.source for name, content in others.items()]
    configuration = dict(submission.configuration)
    for key in ("spark.files", "spark.submit.pyFiles"):
        configuration[key] = ",".join(filter(None, (configuration.get(key, ""), *uris)))
    return replace(submission, files={program: submission.files[program]}, configuration=configuration)


def stage_jars(options: Mapping[str, str], cache: Callable[[], ContentCache]) -> dict[str, str]:
    """Copy the jars of this machine to where drivers and executors can read them; all side by side.

    Parameters
    ----------
    options : mapping
        Of a job, from :meth:`yarnflow.client.jars.bring.JarBringer.bring`.

    Raises
    ------
    StorageError
        An upload failed, or a jar cannot be read any more.
    """
    local = [jar for jar in jars_of(options) if split_uri(jar)[0] == "file"]
    if not local:
        return dict(options)
    store = cache()

    def copy(jar: str) -> str:
        path = Path(split_uri(jar)[2])
        return store.put(path, path.name, shared=False).resource.source

    copies = {jar: in_background(partial(copy, jar), f"upload-{jar}") for jar in local}
    return moved(options, {jar: place.result() for jar, place in copies.items()})


def stage_from_container(options: Mapping[str, str], configuration: Configuration) -> dict[str, str]:
    """The same for a program that runs in a container, whose files no other container can read.

    Raises
    ------
    YarnflowError
        HDFS cannot be reached or written to, or as :func:`stage_jars`.
    """

    def cache() -> ContentCache:
        services = yarn_services(configuration, os.environ)
        prepare(services.fs, services.layout, services.user)
        return ContentCache(services.fs, services.layout, Path("hashes.json").absolute())

    return stage_jars(options, cache)

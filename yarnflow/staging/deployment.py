"""The directory of one cluster on the shared file system, and what its files say.

Client and containers meet here: the client writes what the containers need, the master that leads
publishes where it serves.  Every file appears whole or not at all.  Flink counterpart: the
application directory of ``YarnClusterDescriptor`` with its shipped ``flink-conf.yaml``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeVar
from urllib.parse import urlsplit

from yarnflow.config.options import ha as ha_options
from yarnflow.core.files import FileStatus, FileSystem
from yarnflow.core.json_codec import from_json, to_json
from yarnflow.core.messages import JobDetails, JobSubmission
from yarnflow.core.yarn import ApplicationSpec, DeploymentMode, LocalResource, Visibility
from yarnflow.errors import FileMissing, RpcProtocolError, StorageError
from yarnflow.staging.layout import (
    APPLICATION_FILE,
    CONNECTION_FILE,
    DEPLOYMENT_FILE,
    RESULT_FILE,
    SECRET_FILE,
    SUBMISSION_FILE,
    StagingLayout,
    deployment_tag,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Deployment:
    """What every container of a cluster needs to know; ``deployment.json``."""

    #: 16 hexadecimal digits
    deployment_id: str
    mode: DeploymentMode
    #: the staging directory, ``hdfs://host:port/user/ann/.yarnflow``
    staging_uri: str
    #: the application's directory, a path without scheme
    application_dir: str
    user: str
    #: all effective options of the client
    configuration: dict[str, str] = field(default_factory=dict)
    #: interpreter: absolute, or relative to the container's working directory
    python: str = "python3"
    #: slots the job wants; 0 = unknown
    required_slots: int = 0
    initial_task_managers: int = 0
    #: empty = no key
    job_key: str = ""
    key_generation: int = -1
    #: APPLICATION: program file name, then its arguments
    program_argv: tuple[str, ...] = ()
    #: drivers the master's container has memory for
    drivers: int = 1
    #: further drivers it has memory for, whose only purpose is to be there when another one is lost
    spare_drivers: int = 0
    #: masters there should be; more than one only with high availability
    masters: int = 1
    #: PER_JOB: id of the job
    job_id: str = ""
    name: str = ""
    #: which YARN it is submitted to (:attr:`HadoopConf.yarn_cluster`); empty = not known
    yarn_cluster: str = ""

    @property
    def layout(self) -> StagingLayout:
        """Paths of the staging directory it belongs to."""
        return StagingLayout(urlsplit(self.staging_uri).path.rstrip("/"))

    @property
    def highly_available(self) -> bool:
        """Another master takes over when one is lost."""
        return self.configuration.get(ha_options.HA_TYPE.key) == "zookeeper"

    @property
    def one_job(self) -> bool:
        """Jobs never run at the same time."""
        return self.mode is DeploymentMode.PER_JOB or self.drivers == 1

    @property
    def tag(self) -> str:
        return deployment_tag(self.deployment_id)


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the JobManager that leads serves; ``connection.json``."""

    #: its application
    application_id: str
    #: Thrift, ``host:port``
    address: str
    web_address: str
    leader_id: str
    epoch: int
    started_ms: int
    #: another master takes over when this one is lost, and is published in its place
    highly_available: bool = False


@dataclass(frozen=True, slots=True)
class ApplicationResult:
    """How an application ended; ``result.json``."""

    #: name of the job's status, or of YARN's final status when there was no job
    status: str
    diagnostics: str = ""
    details: JobDetails | None = None
    #: code of the error with which its job or program was refused; empty = it was not
    error_code: str = ""


class ApplicationDirectory:
    """The directory of one application, or of all that are the masters of one cluster.

    Parameters
    ----------
    fs : FileSystem
    layout : StagingLayout
    deployment_id : str
    """

    def __init__(self, fs: FileSystem, layout: StagingLayout, deployment_id: str) -> None:
        self._fs: Final = fs
        self.path: Final = layout.application(deployment_id)
        self.deployment_id: Final = deployment_id

    def create(self) -> None:
        """Make the directory, for the user only; ``layout.prepare`` made its parent."""
        self._fs.make_directory(self.path, permission=0o700)

    def delete(self) -> bool:
        """Delete it with everything in it; False when there was nothing."""
        return self._fs.delete(self.path)

    def write_deployment(self, deployment: Deployment) -> None:
        """Raises FileMissing when the directory is gone, as all writes here do."""
        self._write(DEPLOYMENT_FILE, to_json(deployment).encode())

    def read_deployment(self) -> Deployment:
        """Raises FileMissing."""
        return self._parse(Deployment, DEPLOYMENT_FILE, self._fs.read(self.file(DEPLOYMENT_FILE)))

    def write_secret(self, secret: str) -> None:
        """``secret`` is what ``process.secret`` makes: 64 hexadecimal digits."""
        self._write(SECRET_FILE, f"{secret.strip()}\n".encode("ascii"))

    def read_secret(self) -> str:
        """Raises FileMissing."""
        return self._fs.read(self.file(SECRET_FILE)).decode("ascii", "replace").strip()

    def write_submission(self, submission: JobSubmission) -> None:
        """The job that the master starts."""
        self._write(SUBMISSION_FILE, to_json(submission).encode())

    def read_submission(self) -> JobSubmission:
        """Raises FileMissing."""
        return self._parse(JobSubmission, SUBMISSION_FILE, self._fs.read(self.file(SUBMISSION_FILE)))

    def write_application(self, spec: ApplicationSpec) -> None:
        """How a master starts another one."""
        self._write(APPLICATION_FILE, to_json(spec).encode())

    def read_application(self) -> ApplicationSpec:
        """Raises FileMissing."""
        content = self._fs.read(self.file(APPLICATION_FILE))
        return self._parse(ApplicationSpec, APPLICATION_FILE, content)

    def publish_connection(self, connection: Connection) -> None:
        """Say where the JobManager serves; replaces what an earlier one said."""
        self._write(CONNECTION_FILE, to_json(connection).encode())

    def read_connection(self) -> Connection | None:
        """None until the master has published it, and when the directory is gone."""
        content = self._read(CONNECTION_FILE)
        return None if content is None else self._parse(Connection, CONNECTION_FILE, content)

    def write_result(self, result: ApplicationResult) -> None:
        """Say how it ended."""
        self._write(RESULT_FILE, to_json(result).encode())

    def read_result(self) -> ApplicationResult | None:
        """None while there is none, and when the directory is gone."""
        content = self._read(RESULT_FILE)
        return None if content is None else self._parse(ApplicationResult, RESULT_FILE, content)

    def file(self, name: str) -> str:
        """Path of a file in the directory."""
        return f"{self.path}/{name}"

    def resource(self, name: str) -> LocalResource:
        """A file of the directory as YARN localises it, for this application only.

        Raises
        ------
        FileMissing
            It has not been written.
        """
        status: FileStatus | None = self._fs.status(self.file(name))
        if status is None:
            raise FileMissing(f"{self._fs.uri}{self.file(name)} does not exist; submit again")
        return LocalResource(
            source=self._fs.uri + self.file(name),
            visibility=Visibility.APPLICATION,
            size_bytes=status.length_bytes,
            modified_ms=status.modified_ms,
        )

    def _write(self, name: str, content: bytes) -> None:
        self._fs.write(self.file(name), content, permission=0o600)

    def _read(self, name: str) -> bytes | None:
        try:
            return self._fs.read(self.file(name))
        except FileMissing:
            return None

    def _parse(self, cls: type[T], name: str, content: bytes) -> T:
        try:
            return from_json(cls, content.decode("utf-8", "replace"))
        except RpcProtocolError as error:
            raise StorageError(f"{self._fs.uri}{self.file(name)} cannot be read: {error}") from error

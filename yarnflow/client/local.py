"""The ``local`` clusters of this user that run on this machine, for verbs about their jobs.

Each belongs to another process: a ``yarnflow submit``, or a program that started one.  They are found by
their runtime directories, whose owners hold locks on them; address and secret are read there, so no option
has to name them.  Decides which cluster is meant where several run.  Flink has no counterpart: its
``MiniCluster`` is reached by its own process only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from yarnflow.client.cluster import ClusterConnection
from yarnflow.config.configuration import Configuration
from yarnflow.config.options import cluster
from yarnflow.core.ids import JobId
from yarnflow.core.messages import Fence, JobDetails, JobSubmission, JobSubmitted
from yarnflow.core.ports import DispatcherGateway, GatewayFactory
from yarnflow.errors import (
    ConfigError,
    HaError,
    InvalidOption,
    JobNotFound,
    RpcError,
    RpcUnavailable,
    YarnflowError,
)

_NONE_RUNS: Final = "no local cluster of this user runs"
_LIFE: Final = "a local cluster and its jobs end with the command or program that started them"

#: opens connections to processes that know a secret
OpenFactory = Callable[[bytes], GatewayFactory]


class RunningLocalCluster:
    """A ``local`` cluster of another process.

    Parameters
    ----------
    directory : Path
        Its runtime directory.
    address : str
        ``host:port`` of its JobManager.
    factory : GatewayFactory
        Opens connections; closed with this.
    lives : callable
        Whether its owner still holds the directory.
    """

    def __init__(
        self, directory: Path, address: str, factory: GatewayFactory, lives: Callable[[Path], bool]
    ) -> None:
        self._directory = directory
        self._address = address
        self._factory = factory
        self._lives = lives
        self._gateway: DispatcherGateway | None = None

    def __str__(self) -> str:
        return f"local cluster {self._address} in {self._directory}"

    @property
    def owned(self) -> bool:
        """It is another process's."""
        return False

    @property
    def named_by(self) -> str:
        """All of this user's are looked at."""
        return "-t local"

    @property
    def programs(self) -> None:
        """Programs run in its owner."""

    def submit(self, submission: JobSubmission, required_slots: int) -> JobSubmitted:
        """Refused.

        Raises
        ------
        InvalidOption
            Its owner alone gives it jobs, and slots for them.
        """
        raise InvalidOption(f"{self} takes jobs from the process that started it only")

    def cluster_of(self, job_id: JobId) -> RunningLocalCluster:
        """It runs all of its jobs itself."""
        return self

    def gateway(self) -> DispatcherGateway:
        """The Dispatcher; there is one master."""
        if self._gateway is None:
            self._gateway = self._factory.dispatcher(self._address)
        return self._gateway

    def present_gateway(self) -> DispatcherGateway:
        return self.gateway()

    def followed(self) -> Fence | None:
        """Nobody takes over."""
        return None

    def failure(self) -> YarnflowError | None:
        """That it has ended, once its owner has let go of the directory."""
        if self._lives(self._directory):
            return None
        return RpcUnavailable(
            f"the local cluster at {self._address} has ended, and how its jobs ended is not known here; the "
            "command or program that started it has said so"
        )

    def final_details(self, job_id: JobId) -> JobDetails | None:
        """Nothing is left of its jobs when it is gone."""
        return None

    def stop(self, *, forced: bool, failed: bool) -> str:
        """Close the connections; the cluster stays."""
        self._factory.close()
        return ""


def running_local_clusters(
    configuration: Configuration, open_factory: OpenFactory | None = None
) -> list[RunningLocalCluster]:
    """Those that serve, of :func:`found_local_clusters`."""
    found = []
    for running in found_local_clusters(configuration, open_factory):
        if _answers(running):
            found.append(running)
        else:
            running.stop(forced=False, failed=False)
    return found


def found_local_clusters(
    configuration: Configuration, open_factory: OpenFactory | None = None
) -> list[RunningLocalCluster]:
    """Those that have published where they serve; nobody is asked.

    Parameters
    ----------
    configuration : Configuration
        ``io.tmp.dirs`` says where their directories are.
    open_factory : callable, optional
        Default: by Thrift.

    Raises
    ------
    ConfigError
        The directory of all clusters is not this user's alone, or a secret is open to others.
    """
    from yarnflow.process.dirs import (
        LOCAL_NAME,
        base_directory,
        owner_lives,
        read_json,
        running_directories,
        temporary_directory,
    )
    from yarnflow.process.secret import read_secret

    found = []
    for directory in running_directories(base_directory(temporary_directory(configuration)), LOCAL_NAME):
        published = read_json(directory.jobmanager_file)
        if published is None:
            continue  # its JobManager does not serve yet, so it has no job
        try:
            secret = read_secret(directory.secret_file).encode("ascii")
        except ConfigError:
            if directory.secret_file.exists():
                raise
            continue  # it has just ended
        factory = (open_factory or _by_thrift(configuration))(secret)
        found.append(RunningLocalCluster(directory.path, str(published["address"]), factory, owner_lives))
    return found


def _by_thrift(configuration: Configuration) -> OpenFactory:
    from yarnflow.rpc.gateways import ThriftGatewayFactory
    from yarnflow.rpc.member import Member, Role

    ask_timeout_ms = configuration.get(cluster.RPC_ASK_TIMEOUT_MS)
    frame_bytes = configuration.get(cluster.RPC_FRAME_SIZE_BYTES)
    # the secret is the cluster's own, its name is in its options and not in the client's
    return lambda secret: ThriftGatewayFactory(
        Member(Role.CLIENT, secret), "client", ask_timeout_ms, frame_bytes
    )


def _answers(running: ClusterConnection) -> bool:
    try:
        running.gateway().leader()
    except (RpcError, HaError):
        return False
    return True


def local_clusters(
    configuration: Configuration, job_id: str = "", open_factory: OpenFactory | None = None
) -> list[ClusterConnection]:
    """The ``local`` target, for verbs about jobs: every cluster of this user's that runs.

    Raises
    ------
    JobNotFound, RpcUnavailable
        None runs, for a verb about one job and for others.
    ConfigError
        As :func:`running_local_clusters`.
    """
    running = running_local_clusters(configuration, open_factory)
    if running:
        return [*running]
    from yarnflow.process.dirs import base_directory, temporary_directory

    looked = base_directory(temporary_directory(configuration))
    if job_id:
        raise JobNotFound(f"no job {job_id}: {_NONE_RUNS} (looked in {looked}); {_LIFE}")
    raise RpcUnavailable(f"{_NONE_RUNS} (looked in {looked}); {_LIFE}")


def clusters_here(
    configuration: Configuration,
    reach_standalone: Callable[[], ClusterConnection],
    open_factory: OpenFactory | None = None,
) -> list[ClusterConnection]:
    """Where no option names a cluster: the local ones, and the standalone one of the default options.

    Parameters
    ----------
    reach_standalone : callable
        Reaches that one.

    Raises
    ------
    YarnflowError
        None runs: why the standalone one cannot be reached.
    """
    running: list[ClusterConnection] = [*running_local_clusters(configuration, open_factory)]
    try:
        standalone = reach_standalone()
        try:
            standalone.gateway()
        except BaseException:
            standalone.stop(forced=False, failed=False)
            raise
    except (ConfigError, RpcUnavailable) as error:
        if running:
            return running
        raise type(error)(f"{_NONE_RUNS}, and {error}") from error
    return [*running, standalone]


def cluster_with(clusters: Sequence[ClusterConnection], job_id: str) -> ClusterConnection:
    """The one that a verb means; the others are let go of.

    Parameters
    ----------
    clusters : sequence of ClusterConnection
        At least one.
    job_id : str
        The job the verb is about; empty = it names none.

    Raises
    ------
    JobNotFound
        None of them knows the job.
    InvalidOption
        More than one does, or several run and the verb names no job.
    """
    if len(clusters) == 1:
        # says itself whether it knows the job, and what is wrong if it does not answer
        return clusters[0]
    having = [found for found in clusters if not job_id or _knows(found, JobId(job_id))]
    chosen = having[0] if len(having) == 1 else None
    for other in clusters:
        if other is not chosen:
            other.stop(forced=False, failed=False)
    if chosen is not None:
        return chosen
    names = "; ".join(map(_name, having or clusters))
    if not having:
        raise JobNotFound(
            f"no job {job_id} on the {len(clusters)} clusters of this user that run here ({names}); "
            "`yarnflow list --all` shows the jobs there are"
        )
    what = f"have job {job_id}" if job_id else "run on this machine"
    raise InvalidOption(
        f"{len(having)} clusters of this user {what} ({names}); name one by -m host:port and "
        "-Dsecurity.cluster-secret-file=DIRECTORY/secret" + ("" if job_id else ", or name the job")
    )


def _knows(found: ClusterConnection, job_id: JobId) -> bool:
    with suppress(JobNotFound, RpcError, HaError):
        found.gateway().job_details(job_id)
        return True
    return False


def _name(found: ClusterConnection) -> str:
    return str(found) if isinstance(found, RunningLocalCluster) else f"standalone cluster {found.named_by}"

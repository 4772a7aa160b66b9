"""What every verb about YARN needs: Hadoop's configuration, HDFS, the ResourceManager.

Everything here works without a JVM; only :meth:`YarnServices.submitter` starts one, when it is
told to.  Nothing is asked of YARN or HDFS before somebody uses it.  Flink counterpart:
``YarnClusterClientFactory``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from yarnflow.config.configuration import Configuration
from yarnflow.config.options import cluster as cluster_options
from yarnflow.config.options import yarn
from yarnflow.core.files import FileSystem
from yarnflow.errors import ConfigError, InvalidOption

if TYPE_CHECKING:
    from yarnflow.config.hadoop.conf import HadoopConf
    from yarnflow.core.ports import GatewayFactory
    from yarnflow.core.yarn import YarnCluster, YarnSubmitter
    from yarnflow.staging.layout import StagingLayout

#: name of the staging directory in a user's home
STAGING_NAME: Final = ".yarnflow"
#: libraries only YARN needs
_LIBRARIES: Final = ("skein", "hdfs", "requests", "grpc")


def client_gateways(configuration: Configuration, secret: str) -> GatewayFactory:
    """Gateways to the processes of a cluster that has this secret."""
    from yarnflow.rpc.gateways import ThriftGatewayFactory
    from yarnflow.rpc.member import Member, Role

    return ThriftGatewayFactory(
        # the secret is the application's own, the cluster's name is in its options and not in the client's
        Member(Role.CLIENT, secret.encode("ascii")),
        "client",
        configuration.get(cluster_options.RPC_ASK_TIMEOUT_MS),
        configuration.get(cluster_options.RPC_FRAME_SIZE_BYTES),
    )


@dataclass(slots=True)
class YarnServices:
    """Made by :func:`yarn_services`; safe to use from several threads."""

    configuration: Configuration
    conf: HadoopConf
    user: str
    fs: FileSystem
    cluster: YarnCluster
    environ: Mapping[str, str] = field(repr=False)
    #: that is being started already; None = one of skein's is made when it is first needed
    started_submitter: InitVar[YarnSubmitter | None] = None
    #: configuration and secret of a cluster → gateways to it
    new_gateways: Callable[[Configuration, str], GatewayFactory] = client_gateways
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _layout: StagingLayout | None = None
    _submitter: YarnSubmitter | None = field(default=None, init=False)

    def __post_init__(self, started_submitter: YarnSubmitter | None) -> None:
        self._submitter = started_submitter

    @property
    def layout(self) -> StagingLayout:
        """Paths below the staging directory; asks HDFS for the user's home once."""
        with self._lock:
            if self._layout is None:
                from yarnflow.staging.layout import StagingLayout

                self._layout = StagingLayout(staging_root(self.configuration, self.fs))
            return self._layout

    def submitter(self) -> YarnSubmitter:
        """The one client of skein in this process; its JVM starts with ``start()`` or ``submit()``."""
        with self._lock:
            if self._submitter is None:
                with libraries():
                    from yarnflow.yarn.submitter import SkeinSubmitter

                    self._submitter = SkeinSubmitter(self.conf, self.cluster, self.environ)
            return self._submitter

    def close(self) -> None:
        """End the JVM, if there is one; a further submit starts another.  Idempotent."""
        with self._lock:
            submitter = self._submitter
        if submitter is not None:
            submitter.close()


def yarn_services(
    configuration: Configuration, environ: Mapping[str, str], *, submits: bool = False
) -> YarnServices:
    """Read Hadoop's configuration and set everything up; nothing is connected yet.

    Parameters
    ----------
    submits : bool
        Something will be submitted: skein's JVM is started before anything else is done.

    Raises
    ------
    YarnUnavailable
        HADOOP_CONF_DIR is missing or has no configuration of HDFS and YARN.
    ConfigError
        Libraries are not installed.
    """
    with libraries():
        from yarnflow.config.hadoop.conf import HadoopConf
        from yarnflow.yarn.web.resource_manager import ResourceManagerRest

        conf = HadoopConf.load(environ)
        user = conf.user(environ)
        cluster = ResourceManagerRest(conf.resource_manager_web_addresses(), user)
        submitter: YarnSubmitter | None = None
        if submits:
            from yarnflow.yarn.submitter import SkeinSubmitter

            submitter = SkeinSubmitter(conf, cluster, environ)
            submitter.start()
        try:
            from yarnflow.fs.file_systems import open_file_system

            fs = open_file_system(conf, user, replication=configuration.get(yarn.FILE_REPLICATION))
        except BaseException:
            if submitter is not None:
                submitter.close()
            raise
        return YarnServices(configuration, conf, user, fs, cluster, environ, submitter)


@contextmanager
def libraries() -> Iterator[None]:
    """Turn a missing library of YARN's into an error that says how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _LIBRARIES:
            raise
        raise ConfigError(
            f"targets on YARN need the Python package {missing}, which is not installed; run: "
            f"pip install {missing}"
        ) from error


def staging_root(configuration: Configuration, fs: FileSystem) -> str:
    """Absolute path of the staging directory (``yarn.staging-directory``).

    Raises
    ------
    InvalidOption
        It is not a path of the default file system.
    """
    text = configuration.get(yarn.STAGING_DIRECTORY)
    if not text:
        return f"{fs.home().rstrip('/')}/{STAGING_NAME}"
    parts = urlsplit(text)
    path = parts.path.rstrip("/")
    if parts.scheme and text != fs.uri and not text.startswith(fs.uri.rstrip("/") + "/"):
        if parts.scheme != urlsplit(fs.uri).scheme or parts.netloc:
            raise InvalidOption(
                f"{yarn.STAGING_DIRECTORY.key} is {text}: only directories of {fs.uri} can be used; "
                "leave scheme and host out"
            )
    if not path.startswith("/"):
        raise InvalidOption(f"{yarn.STAGING_DIRECTORY.key} is {text!r}; expected an absolute path")
    return path

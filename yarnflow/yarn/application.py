"""The application a process runs in, through skein's ApplicationMaster.

Decides how a container finds the ApplicationMaster and what it is told at the end.  Flink
counterpart: ``YarnResourceManagerDriver``'s registration and deregistration.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

from yarnflow.core.yarn import FinalStatus, YarnCluster
from yarnflow.errors import YarnError, YarnUnavailable
from yarnflow.yarn.drivers import YarnDrivers
from yarnflow.yarn.library import skein
from yarnflow.yarn.master_jar import WEB_ROUTE
from yarnflow.yarn.web.node_manager import NodeManagers
from yarnflow.yarn.workers import YarnWorkers

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

#: YARN keeps 64 KiB of an attempt's diagnostics, and shows them in one cell of a table
_MAX_DIAGNOSTICS: Final = 4_000


class YarnApplication:
    """Handle of a container's own application; for the master and for TaskManagers.

    Parameters
    ----------
    client : skein.ApplicationClient
    container_id : str
        YARN's id of this container.
    worker_id : str
        skein's id of this container, ``taskmanager_3``; empty in the master.
    workers : YarnWorkers
        For the master; not started.
    nodes : NodeManagers, optional
        Tell the master how drivers ended that have containers of their own.
    """

    def __init__(
        self,
        client: Any,
        container_id: str,
        worker_id: str,
        workers: YarnWorkers,
        nodes: NodeManagers | None = None,
    ) -> None:
        self._client = client
        self._nodes = nodes
        self.application_id = str(client.id)
        self.container_id = container_id
        self.worker_id = worker_id
        self.workers = workers
        self._finished = threading.Event()
        self._has_web_page = False

    @classmethod
    def from_current(cls, cluster: YarnCluster | None = None, user: str = "") -> YarnApplication:
        """The application whose container this process runs in.

        Parameters
        ----------
        cluster : YarnCluster, optional
            Tells the master why containers are not granted.
        user : str
            Who asks NodeManagers about containers that ended; empty = nobody does.

        Raises
        ------
        YarnError
            This process is not in a container that skein started.
        """
        library = skein()
        try:
            client = library.ApplicationClient.from_current()
        except (ValueError, OSError) as error:
            raise YarnError(f"this process is not in a container of an application: {error}") from error
        nodes = NodeManagers(user) if user else None
        return cls(
            client,
            library.properties.yarn_container_id or "",
            library.properties.container_id or "",
            YarnWorkers(client, cluster, nodes),
            nodes,
        )

    def serve_drivers(self, drivers: YarnDrivers) -> None:
        """Let drivers have containers of this application from now on."""
        drivers.attach(self._client, self._nodes)

    def take_value(self, key: str) -> bytes | None:
        """Take a value out of skein's key-value store; None = it is not there, or somebody else has it."""
        value = self._call(lambda: self._client.kv.pop(key, None))
        return None if value is None else bytes(value)

    def set_progress(self, progress: float) -> None:
        """0 … 1, as YARN shows it."""
        self._call(lambda: self._client.set_progress(min(1.0, max(0.0, progress))))

    def publish(self, key: str, value: bytes) -> None:
        """Put into skein's key-value store, where other containers find it."""

        def put() -> None:
            self._client.kv[key] = value

        self._call(put)

    def await_value(self, key: str) -> bytes:
        """Block until the key is there, then its value.

        Raises
        ------
        YarnUnavailable
            The ApplicationMaster ended meanwhile.
        """
        return bytes(self._call(lambda: self._client.kv.wait(key)))

    def add_web_page(self, url: str, name: str = "JobManager") -> str:
        """Make the page at ``url`` reachable through YARN's proxy; returns its address there.

        Takes the place of the page that was there before.
        """
        if self._has_web_page:
            self._has_web_page = False
            self._call(lambda: self._client.ui.remove_page(WEB_ROUTE))
        page = self._call(lambda: self._client.ui.add_page(WEB_ROUTE, url, link_name=name))
        self._has_web_page = True
        return str(page.address)

    def finish(self, status: FinalStatus, diagnostics: str = "") -> None:
        """End the application with all of its containers; this one is killed as well.  Idempotent.

        Raises
        ------
        YarnUnavailable
            The ApplicationMaster is gone.
        """
        if self._finished.is_set():
            return
        self._finished.set()
        self.workers.close()
        text = diagnostics.strip() or _WORDS[status]
        if len(text) > _MAX_DIAGNOSTICS:
            text = text[: _MAX_DIAGNOSTICS - 1] + "…"
        self._call(lambda: self._client.shutdown(status.value, text))

    def close(self) -> None:
        """Give the connection back; the application goes on.  Idempotent."""
        self.workers.close()
        self._client.close()

    def _call(self, what: Callable[[], _T]) -> _T:
        exceptions = skein().exceptions
        try:
            return what()
        except exceptions.ConnectionError as error:
            raise YarnUnavailable(
                f"skein's ApplicationMaster of {self.application_id} is gone: {error}"
            ) from error
        except exceptions.SkeinError as error:
            raise YarnError(f"skein's ApplicationMaster of {self.application_id}: {error}") from error
        except (KeyError, ValueError) as error:  # what gRPC's statuses of the ApplicationMaster become
            raise YarnError(
                f"skein's ApplicationMaster of {self.application_id} refused: {error}"
            ) from error


_WORDS: Final = {
    FinalStatus.SUCCEEDED: "The job finished.",
    FinalStatus.FAILED: "The job failed.",
    FinalStatus.KILLED: "The job was canceled.",
    FinalStatus.UNDEFINED: "",
}

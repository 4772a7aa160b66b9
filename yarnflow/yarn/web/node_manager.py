"""What a NodeManager still knows of a container that ended."""

from __future__ import annotations

import logging
from typing import Final

from yarnflow.errors import YarnflowError
from yarnflow.yarn.container_exit import ContainerExit, process_exit
from yarnflow.yarn.web.container_logs import ContainerLogs
from yarnflow.yarn.web.http import WebServices

logger = logging.getLogger(__name__)

_TIMEOUT_MS: Final = 3_000
_TAIL_BYTES: Final = 2_000
_TAIL_LINES: Final = 12


class NodeManagers:
    """Asks the NodeManager of a container about its end.

    Parameters
    ----------
    user : str
        Who asks, where there is no Kerberos.
    """

    def __init__(self, user: str) -> None:
        self._user = user
        self._logs = ContainerLogs(user, timeout_ms=_TIMEOUT_MS)

    def exit(self, node: str, container_id: str, log_name: str) -> ContainerExit:
        """Exit code and last lines of the log, as far as the node still knows them."""
        try:
            services = WebServices(
                [node], self._user, what="the NodeManager", advice="look at its log", timeout_ms=_TIMEOUT_MS
            )
            try:
                found = services.get(f"/ws/v1/node/containers/{container_id}")["container"]
            finally:
                services.close()
        except (YarnflowError, KeyError) as error:
            logger.debug("%s on %s: %s", container_id, node, error)
            found = {}
        code = int(found.get("exitCode", 0))
        tail = self._tail(node, container_id, log_name)
        return process_exit(code if code > 0 else None, tail)

    def _tail(self, node: str, container_id: str, log_name: str) -> str:
        try:
            text = self._logs.tail(node, container_id, log_name, _TAIL_BYTES).decode(errors="replace")
        except YarnflowError as error:
            logger.debug("%s on %s: %s", container_id, node, error)
            return ""
        return "\n".join(text.splitlines()[-_TAIL_LINES:])

"""Requests to Elasticsearch and OpenSearch.  The only importer of opensearchpy, which speaks to both."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import opensearchpy
import opensearchpy.exceptions
import urllib3

from yarnflow.config.secrets import masked_text
from yarnflow.errors import ServerError, ServerUnavailable
from yarnflow.graph.connectors.elasticsearch import ElasticsearchServer

# it tells every request that fails, and we raise it
logging.getLogger("opensearch").setLevel(logging.CRITICAL)

_PASSING: Final = (429, 502, 503, 504)


class Cluster:
    """A connection of one worker.

    Parameters
    ----------
    server : ElasticsearchServer
    """

    def __init__(self, server: ElasticsearchServer) -> None:
        self._server = server
        self._client: Any = opensearchpy.OpenSearch(
            hosts=list(server.hosts),
            http_auth=(server.user, server.password) if server.user else None,
            url_prefix=server.path_prefix,
            timeout=urllib3.Timeout(
                connect=server.connection_timeout_ms / 1000, read=server.socket_timeout_ms / 1000
            ),
            # a node that cannot be reached: the next one, at once; whoever calls waits and tries again
            max_retries=len(server.hosts) - 1,
            retry_on_timeout=False,
            retry_on_status=(),
        )

    def send(self, lines: bytes) -> Sequence[Mapping[str, Any]]:
        """A request of many documents; what each of them met.

        Raises
        ------
        ServerUnavailable
            No node answers, or it has no time.
        ServerError
            The cluster refuses the request.
        """
        try:
            answer = self._client.bulk(body=lines.decode())
        except opensearchpy.exceptions.ConnectionError as error:
            # what timed out, too
            said = f"{self._server.where}: {self._said(error)}"
            raise ServerUnavailable(f"{said}; see whether it runs") from None
        except opensearchpy.exceptions.TransportError as error:
            kind = ServerUnavailable if error.status_code in _PASSING else ServerError
            raise kind(f"{self._server.where}: {self._refusal(error)}") from None
        found: Sequence[Mapping[str, Any]] = answer["items"]
        return found

    def close(self) -> None:
        """Let go of the connection."""
        with suppress(Exception):
            self._client.close()

    def _refusal(self, error: Any) -> str:
        if error.status_code in (401, 403):
            return f"user {self._server.user or '(none)'} is refused: {error.status_code} {self._said(error)}"
        return f"{error.status_code} {self._said(error)}"

    def _said(self, error: Any) -> str:
        info = error.info
        if isinstance(info, dict):
            found = info.get("error", info)
            info = f"{found.get('type')}: {found.get('reason')}" if isinstance(found, dict) else found
        text = " ".join(str(info or error.error).split())[:300]
        return masked_text(text, [self._server.password] if self._server.password else [])

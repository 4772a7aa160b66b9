"""Documents of Elasticsearch and OpenSearch.  PyFlink: ``pyflink.datastream.connectors.elasticsearch``.

The job's environment needs the client, which speaks to both: ``pip install 'yarnflow[elasticsearch]'``.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import Any, Final
from urllib.parse import urlsplit

from yarnflow.api.building.definitions import columns
from yarnflow.api.datastream.connectors.base import DeliveryGuarantee, Sink
from yarnflow.config.secrets import HIDDEN, masked_urls
from yarnflow.errors import GraphError, UnsupportedGraph
from yarnflow.graph import operators
from yarnflow.graph.compatibility import NO_JVM, differs, refused, refused_class, same_and
from yarnflow.graph.connectors.elasticsearch import ElasticsearchServer, FlushBackoff
from yarnflow.graph.connectors.elasticsearch import ElasticsearchSink as ElasticsearchSinkOperator
from yarnflow.graph.schema import Schema

_MIB: Final = 1024 * 1024
#: of a request, where the program sets no limit
_LARGEST: Final = 2**31

Elasticsearch6SinkBuilder: Any = refused_class(
    "Elasticsearch6SinkBuilder", "Elasticsearch 6 is no longer maintained", "Elasticsearch7SinkBuilder"
)


class FlushBackoffType(Enum):
    """What is done with documents that the cluster has no time for."""

    #: send them again, always after the same time
    CONSTANT = (0,)
    #: send them again, each time after twice the time
    EXPONENTIAL = (1,)
    #: fail
    NONE = (2,)


class ElasticsearchEmitter:
    """Says index and id of each document; made by its static methods."""

    def __init__(self, index: str, dynamic: bool, key_field: str) -> None:
        self._index = index
        self._dynamic = dynamic
        self._key_field = key_field

    @staticmethod
    @same_and("`doc_type` has no effect: only Elasticsearch 6 has types")
    def static_index(
        index: str, key_field: str | None = None, doc_type: str | None = None
    ) -> ElasticsearchEmitter:
        """All documents in one index.

        Parameters
        ----------
        index : str
        key_field : str, optional
            The element's field with the document's id: fields of a document that is there are updated.
        """
        return _emitter("static_index", index, False, key_field)

    @staticmethod
    @same_and("`doc_type` has no effect: only Elasticsearch 6 has types")
    def dynamic_index(
        index_field: str, key_field: str | None = None, doc_type: str | None = None
    ) -> ElasticsearchEmitter:
        """Each document in the index that a field of its element names.

        Parameters
        ----------
        index_field : str
        key_field : str, optional
            The element's field with the document's id: fields of a document that is there are updated.
        """
        return _emitter("dynamic_index", index_field, True, key_field)


def _emitter(call: str, index: str, dynamic: bool, key_field: str | None) -> ElasticsearchEmitter:
    if not isinstance(index, str) or not index:
        raise GraphError(f"ElasticsearchEmitter.{call}({index!r}): there is no such name")
    return ElasticsearchEmitter(index, dynamic, key_field or "")


class ElasticsearchSink(Sink):
    """Documents of an index; made by a builder.

    Elements are maps, or rows with names.  A document whose id the emitter does not tell gets one of its
    micro-batch, its subtask and its number, so that a batch that is done again replaces its own documents.
    """

    name = "Elasticsearch Sink"

    def __init__(self, sink: ElasticsearchSinkOperator) -> None:
        self._sink = sink

    def operator(self, schema: Schema) -> operators.Operator:
        if schema.element_type is None:
            columns(schema)
        return self._sink


class Elasticsearch7SinkBuilder:
    """Builds a sink of Elasticsearch 7 and later, or of OpenSearch, step by step."""

    def __init__(self) -> None:
        self._emitter: ElasticsearchEmitter | None = None
        self._server = ElasticsearchServer(())
        self._sink = ElasticsearchSinkOperator(self._server, "")

    @refused(NO_JVM)
    def get_http_host_class(self) -> Any:
        """Java's class of addresses."""

    def set_emitter(self, emitter: ElasticsearchEmitter) -> Elasticsearch7SinkBuilder:
        """Which document each element becomes."""
        if not isinstance(emitter, ElasticsearchEmitter):
            raise GraphError(
                f"set_emitter({emitter!r}): use ElasticsearchEmitter.static_index(…) or dynamic_index(…)"
            )
        self._emitter = emitter
        return self

    def set_hosts(self, hosts: str | list[str]) -> Elasticsearch7SinkBuilder:
        """Nodes of the cluster: ``https://host:9200``."""
        named = [hosts] if isinstance(hosts, str) else list(hosts)
        return self._with_server(hosts=tuple(map(_address, named)))

    @differs("documents are with the cluster before their micro-batch is committed, with NONE as well")
    def set_delivery_guarantee(self, delivery_guarantee: DeliveryGuarantee) -> Elasticsearch7SinkBuilder:
        """What holds after a failure: NONE or AT_LEAST_ONCE."""
        if delivery_guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            raise UnsupportedGraph(
                "an Elasticsearch sink has no EXACTLY_ONCE; documents that come again replace themselves, so "
                "use AT_LEAST_ONCE"
            )
        return self

    def set_bulk_flush_max_actions(self, num_max_actions: int) -> Elasticsearch7SinkBuilder:
        """Documents of a request; unless set, 1000; -1 = no limit."""
        return self._limit("set_bulk_flush_max_actions", num_max_actions, "max_actions", 1)

    def set_bulk_flush_max_size_mb(self, max_size_mb: int) -> Elasticsearch7SinkBuilder:
        """Size of a request, MiB; unless set, 5; -1 = no limit."""
        return self._limit("set_bulk_flush_max_size_mb", max_size_mb, "max_bytes", _MIB)

    @differs("without effect: documents are sent with their micro-batch")
    def set_bulk_flush_interval(self, interval_millis: int) -> Elasticsearch7SinkBuilder:
        """Longest time between two requests."""
        return self

    @same_and("EXPONENTIAL doubles the time; a cluster that does not answer is waited for as well")
    def set_bulk_flush_backoff_strategy(
        self, flush_backoff_type: FlushBackoffType, max_retries: int, delay_millis: int
    ) -> Elasticsearch7SinkBuilder:
        """When, and how often, documents are sent again that the cluster had no time for.

        Parameters
        ----------
        flush_backoff_type : FlushBackoffType
        max_retries : int
        delay_millis : int
            Before the first time.
        """
        for name, value in (("max_retries", max_retries), ("delay_millis", delay_millis)):
            if type(value) is not int or value < 0:
                raise GraphError(f"set_bulk_flush_backoff_strategy: {name}={value!r} must be 0 or more")
        backoff = FlushBackoff[flush_backoff_type.name]
        self._sink = replace(self._sink, backoff=backoff, max_retries=max_retries, delay_ms=delay_millis)
        return self

    def set_connection_username(self, username: str) -> Elasticsearch7SinkBuilder:
        """The user."""
        return self._with_server(user=username)

    def set_connection_password(self, password: str) -> Elasticsearch7SinkBuilder:
        """The password; it is part of the job that is submitted."""
        return self._with_server(password=password)

    def set_connection_path_prefix(self, prefix: str) -> Elasticsearch7SinkBuilder:
        """What stands before every path."""
        return self._with_server(path_prefix=prefix)

    @differs("without effect: each subtask has a connection of its own")
    def set_connection_request_timeout(self, timeout: int) -> Elasticsearch7SinkBuilder:
        """How long to wait for a connection of a pool, ms."""
        return self

    def set_connection_timeout(self, timeout: int) -> Elasticsearch7SinkBuilder:
        """How long connecting may take, ms; unless set, 1000."""
        return self._with_server(connection_timeout_ms=_positive("set_connection_timeout", timeout))

    def set_socket_timeout(self, timeout: int) -> Elasticsearch7SinkBuilder:
        """How long the cluster may be silent, ms; unless set, 30000."""
        return self._with_server(socket_timeout_ms=_positive("set_socket_timeout", timeout))

    def build(self) -> ElasticsearchSink:
        """The sink.

        Raises
        ------
        GraphError
            Hosts or the emitter are missing.
        """
        if not self._server.hosts:
            raise GraphError("an Elasticsearch sink needs set_hosts('https://host:9200')")
        if self._emitter is None:
            raise GraphError("an Elasticsearch sink needs set_emitter(ElasticsearchEmitter.static_index(…))")
        emitter = self._emitter
        return ElasticsearchSink(
            replace(
                self._sink,
                server=self._server,
                index=emitter._index,
                dynamic_index=emitter._dynamic,
                key_field=emitter._key_field,
            )
        )

    def _limit(self, call: str, value: int, name: str, unit: int) -> Elasticsearch7SinkBuilder:
        if type(value) is not int or (value < 1 and value != -1):
            raise GraphError(f"{call}({value!r}) must be a whole number above 0, or -1 for no limit")
        limit = _LARGEST if value == -1 else value * unit
        self._sink = replace(self._sink, **{name: limit})  # type: ignore[arg-type]
        return self

    def _with_server(self, **settings: Any) -> Elasticsearch7SinkBuilder:
        self._server = replace(self._server, **settings)
        return self


def _address(host: str) -> str:
    try:
        parts = urlsplit(host if "://" in host else f"http://{host}")
        name, port, rest = parts.hostname, parts.port, (parts.path.strip("/"), parts.query, parts.fragment)
    except ValueError:
        # a port that is none; its text may be what follows a password's slash
        raise _no_address(host) from None
    if parts.scheme not in ("http", "https") or not name or port == 0 or any(rest) or "@" in host:
        raise _no_address(host)
    return f"{parts.scheme}://{f'[{name}]' if ':' in name else name}:{port or 9200}"


def _no_address(host: str) -> GraphError:
    _, user, after = host.rpartition("@")
    shown = f"{HIDDEN}@{after}" if user else masked_urls(after)
    return GraphError(
        f"{shown} is no address of Elasticsearch; give https://host:9200, the user by "
        "set_connection_username(…), and a path by set_connection_path_prefix(…)"
    )


def _positive(call: str, value: int) -> int:
    if type(value) is not int or value < 1:
        raise GraphError(f"{call}({value!r}) must be a whole number above 0")
    return value


__all__ = [
    "DeliveryGuarantee",
    "Elasticsearch6SinkBuilder",
    "Elasticsearch7SinkBuilder",
    "ElasticsearchEmitter",
    "ElasticsearchSink",
    "FlushBackoffType",
]

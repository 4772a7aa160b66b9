"""Indexes of Elasticsearch and OpenSearch, as plain values.  Flink: ``ElasticsearchSink``."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class FlushBackoff(Enum):
    """How long to wait before what was not taken is sent again.  Flink: ``FlushBackoffType``."""

    #: always as long
    CONSTANT = "CONSTANT"
    #: twice as long each time
    EXPONENTIAL = "EXPONENTIAL"
    #: it is not sent again
    NONE = "NONE"


@dataclass(frozen=True, slots=True)
class ElasticsearchServer:
    """Where the cluster is."""

    #: ``http://host:9200``
    hosts: tuple[str, ...]
    user: str = ""
    password: str = field(default="", repr=False)
    path_prefix: str = ""
    connection_timeout_ms: int = 1_000
    #: of an answer
    socket_timeout_ms: int = 30_000

    @property
    def where(self) -> str:
        """For people."""
        return f"Elasticsearch at {', '.join(self.hosts)}"


@dataclass(frozen=True, slots=True)
class ElasticsearchSink:
    """A document for each element.  At-least-once; one that comes again replaces itself."""

    server: ElasticsearchServer
    #: name of the index, or of the field that names it
    index: str
    dynamic_index: bool = False
    #: field with the document's id; empty = it is made of batch, subtask and number
    key_field: str = ""
    #: documents, and bytes, of a request
    max_actions: int = 1_000
    max_bytes: int = 5 * 1024 * 1024
    backoff: FlushBackoff = FlushBackoff.NONE
    max_retries: int = 0
    delay_ms: int = 0

    @property
    def where(self) -> str:
        """What is written, for people."""
        named = f"the index in field {self.index}" if self.dynamic_index else f"index {self.index}"
        return f"{named} of {self.server.where}"

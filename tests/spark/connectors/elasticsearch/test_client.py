"""Which nodes are asked, and how long they have."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from yarnflow.errors import ServerUnavailable
from yarnflow.graph.connectors.elasticsearch import ElasticsearchServer
from yarnflow.spark.connectors.elasticsearch.client import Cluster

ITEMS = [{"index": {"status": 201}}]
LINES = b'{"index":{"_index":"i","_id":"a"}}\n{}\n'


class Node(ThreadingHTTPServer):
    """Takes all documents, or answers with a status."""

    def __init__(self, status: int = 200) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = status
        self.asked = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Node

    def do_POST(self) -> None:
        self.server.asked += 1
        self.rfile.read(int(self.headers["content-length"]))
        answer = json.dumps({"items": ITEMS}).encode()
        self.send_response(self.server.status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *arguments: object) -> None:
        """Says nothing."""


@contextmanager
def running(node: Node) -> Iterator[Node]:
    thread = threading.Thread(target=node.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield node
    finally:
        node.shutdown()
        thread.join()
        node.server_close()


def test_a_node_that_is_dead_is_left_out() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as gone:
        dead = f"http://127.0.0.1:{gone.getsockname()[1]}"
    with running(Node()) as node:
        for _ in range(10):
            # a client begins with any of the nodes
            cluster = Cluster(ElasticsearchServer((dead, node.address)))
            with closing(cluster):
                assert cluster.send(LINES) == ITEMS
    with closing(Cluster(ElasticsearchServer((dead, dead)))) as cluster:
        with pytest.raises(ServerUnavailable, match="see whether it runs$"):
            cluster.send(LINES)


def test_a_node_that_has_no_time_is_told() -> None:
    """Whoever calls waits before it is asked again."""
    with running(Node(503)) as node, closing(Cluster(ElasticsearchServer((node.address,) * 3))) as cluster:
        with pytest.raises(ServerUnavailable, match=": 503 "):
            cluster.send(LINES)
        assert node.asked == 1


def test_connecting_and_answering_have_times_of_their_own() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        host = f"http://127.0.0.1:{silent.getsockname()[1]}"
        # were both one time, this would wait for an hour
        server = ElasticsearchServer((host, host), connection_timeout_ms=3_600_000, socket_timeout_ms=50)
        with closing(Cluster(server)) as cluster, pytest.raises(ServerUnavailable):
            cluster.send(LINES)

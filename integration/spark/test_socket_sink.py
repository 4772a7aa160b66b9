"""Lines to a TCP server, in order and by one connection."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from integration.conftest import wait_until
from integration.servers import free_port
from integration.spark.test_elements import environment
from integration.spark.test_jdbc_sink import attempt, graph_of
from tests.patience import PATIENCE
from yarnflow.api import FileSource
from yarnflow.api.common import SimpleStringSchema, Types
from yarnflow.api.datastream.formats.csv import CsvRowSerializationSchema
from yarnflow.config.configuration import Configuration
from yarnflow.errors import ServerUnavailable
from yarnflow.spark.run.graph_program import GraphProgram


class Server:
    """Keeps what each connection has sent."""

    def __init__(self) -> None:
        self.received: list[bytes] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            number = len(self.received)
            self.received.append(b"")
            with connection:
                while data := connection.recv(65536):
                    self.received[number] += data

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@contextmanager
def listening() -> Iterator[Server]:
    server = Server()
    try:
        yield server
    finally:
        server.close()


@pytest.mark.gate
def test_lines_of_several_batches(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for file in range(3):
        (tmp_path / "in" / f"{file}.csv").write_text("".join(f"{file * 5 + n}\n" for n in range(5)))
    with listening() as server:
        env = environment(1)
        source = FileSource(str(tmp_path / "in"), "csv", "n INT", max_files_per_trigger=1)
        texts = env.from_source(source, None, "n").map(lambda row: f"n{row.n}", Types.STRING())
        texts.write_to_socket("127.0.0.1", server.port, SimpleStringSchema())
        attempt(spark, graph_of(env), tmp_path / "checkpoint")
        expected = sorted(f"n{n}" for n in range(15))
        wait_until(lambda: sorted(b"".join(server.received).decode().split()) == expected, "all lines")
    assert len(server.received) == 1, "one connection"


def test_columns_as_lines(spark: SparkSession, tmp_path: Path) -> None:
    with listening() as server:
        env = environment(1)
        words = env.from_collection([("to",), ("be",)], "word STRING").select("upper(word) AS word")
        row = Types.ROW_NAMED(["word"], [Types.STRING()])
        lines = CsvRowSerializationSchema.Builder(row).build()
        words.write_to_socket("127.0.0.1", server.port, lines)
        attempt(spark, graph_of(env), tmp_path / "checkpoint")
        wait_until(lambda: server.received == [b"TO\nBE\n"], "both lines")


def test_no_server(spark: SparkSession, tmp_path: Path) -> None:
    port = free_port()
    env = environment(1)
    words = env.from_collection(["to"], Types.STRING()).map(lambda word: word, Types.STRING())
    words.write_to_socket("127.0.0.1", port, SimpleStringSchema())
    with pytest.raises(ServerUnavailable, match=f"^the socket at 127.0.0.1:{port}: .*refused.*it runs$"):
        attempt(spark, graph_of(env), tmp_path / "checkpoint")


def test_a_cancel_while_the_server_does_not_read(spark: SparkSession, tmp_path: Path) -> None:
    env = environment(1)
    lines = env.from_collection(list(range(40)), Types.INT()).map(lambda n: "x" * 1_000_000, Types.STRING())
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE.condition_s)
        lines.write_to_socket("127.0.0.1", server.getsockname()[1], SimpleStringSchema())
        program = GraphProgram(spark, graph_of(env), Configuration.empty(), str(tmp_path / "checkpoint"))
        program.prepare()
        program.start()
        connection, _ = server.accept()
        with connection:
            connection.settimeout(PATIENCE.condition_s)
            assert connection.recv(1) == b"x"
            stopping = threading.Thread(target=program.stop, daemon=True)
            stopping.start()
            stopping.join(PATIENCE.condition_s)
            assert not stopping.is_alive()
            received = 1
            while data := connection.recv(1_000_000):
                received += len(data)
        assert received < 40_000_000, "it has not waited for the end, and has let go"

"""A NameNode and DataNode as WebHDFS shows them, in a thread, with faults on demand.

That it behaves as HDFS does is checked by running the same contract on both.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from tests.patience import PATIENCE
from yarnflow.core.files import FileStatus
from yarnflow.errors import FileMissing, StorageError
from yarnflow.testing.file_system import MemoryFileSystem

PREFIX = "/webhdfs/v1"


class _QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that give up are part of the tests."""


class WebHdfsServer:
    """Serves ``fs``; ``requests`` are the operations so far.

    ``faults`` holds, per operation, what happens instead (or besides): (status, Java exception,
    message) is answered, ``"drop"`` closes the connection unanswered, ``"lose"`` does the operation
    and then closes the connection, a function is called first.  Each is used once, None means that
    all is well.
    """

    def __init__(self, fs: MemoryFileSystem) -> None:
        self.fs = fs
        self.requests: list[str] = []
        self.parameters: list[dict[str, str]] = []
        self.faults: dict[str, list[tuple[int, str, str] | str | Callable[[], object] | None]] = {}
        #: where clients are sent for content
        self.data_node = ""
        self._server = _QuietServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(PATIENCE.thread_s)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 10
            # head and body in one piece, which TCP sends at once
            wbufsize = -1

            def do_GET(self) -> None:
                server.serve(self)

            do_PUT = do_DELETE = do_GET

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler

    def serve(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        parameters = {name: values[0] for name, values in parse_qs(parts.query).items()}
        operation = parameters["op"]
        length_bytes = int(handler.headers.get("Content-Length") or 0)
        content = handler.rfile.read(length_bytes)
        if len(content) < length_bytes:
            # the client gave up: HDFS keeps nothing of it once the client has deleted the file
            handler.close_connection = True
            return
        if handler.headers.get("Transfer-Encoding") == "chunked":
            content = b"".join(chunks(handler))
        self.requests.append(operation)
        self.parameters.append(parameters)
        fault = (self.faults.get(operation) or [None]).pop(0)
        if callable(fault):
            fault()
        if fault == "drop":
            handler.close_connection = True
            return
        if isinstance(fault, tuple):
            status, exception, message = fault
            if exception:
                answer(handler, status, remote(exception, message))
            else:
                answer(handler, status, message.encode())
            return
        path = unquote(parts.path.removeprefix(PREFIX))
        try:
            do: Callable[..., Any] = getattr(self, operation.lower())
            result = do(path, parameters, content)
        except FileMissing as error:
            result = 404, remote("FileNotFoundException", f"{error}\n\tat java")
        except StorageError as error:
            exception = "AccessControlException" if "denied" in str(error) else "IOException"
            result = 403, remote(exception, str(error))
        if fault == "lose":
            handler.close_connection = True
        elif isinstance(result, str):
            handler.send_response(307)
            handler.send_header("Location", result)
            handler.send_header("Content-Length", "0")
            handler.end_headers()
        elif isinstance(result, dict):
            answer(handler, 200, json.dumps(result).encode())
        else:
            answer(handler, *result)

    def redirect(self, path: str, parameters: dict[str, str]) -> str:
        query = "&".join(f"{name}={quote(value)}" for name, value in parameters.items())
        operation = {"CREATE": "STORE", "OPEN": "FETCH"}[parameters["op"]]
        base = self.data_node or self.url
        return f"{base}{PREFIX}{quote(path)}?{query}".replace(f"op={parameters['op']}", f"op={operation}")

    def create(self, path: str, parameters: dict[str, str], content: bytes) -> str:
        assert not content
        return self.redirect(path, parameters)

    def store(self, path: str, parameters: dict[str, str], content: bytes) -> tuple[int, bytes]:
        assert (parameters["overwrite"], parameters["createparent"]) == ("true", "false")
        self.fs.write(path, content, permission=int(parameters["permission"], 8))
        return 201, b""

    def open(self, path: str, parameters: dict[str, str], content: bytes) -> str:
        self.fs.read(path)
        return self.redirect(path, parameters)

    def fetch(self, path: str, parameters: dict[str, str], content: bytes) -> tuple[int, bytes]:
        return 200, self.fs.read(path)

    def gethomedirectory(self, path: str, parameters: dict[str, str], content: bytes) -> dict[str, object]:
        return {"Path": f"/user/{parameters['user.name']}"}

    def getfilestatus(self, path: str, parameters: dict[str, str], content: bytes) -> dict[str, object]:
        status = self.fs.status(path)
        if status is None:
            raise FileMissing(path)
        return {"FileStatus": described(status, "")}

    def liststatus(self, path: str, parameters: dict[str, str], content: bytes) -> dict[str, object]:
        status = self.fs.status(path)
        if status is None:
            raise FileMissing(path)
        found = [described(entry, entry.path.rpartition("/")[2]) for entry in self.fs.list(path)]
        return {"FileStatuses": {"FileStatus": found if status.is_directory else [described(status, "")]}}

    def mkdirs(self, path: str, parameters: dict[str, str], content: bytes) -> dict[str, object]:
        self.fs.make_directory(path, permission=int(parameters["permission"], 8))
        return {"boolean": True}

    def rename(self, path: str, parameters: dict[str, str], content: bytes) -> tuple[int, bytes]:
        target = parameters["destination"]
        source, found = self.fs.status(path), self.fs.status(target)
        if source is None:
            raise FileMissing(path)
        if found is not None and found.is_directory != source.is_directory:
            raise StorageError(f"Source {path} and destination {target} must both be directories")
        if found is not None and parameters["renameoptions"] == "NONE":
            return 403, remote("FileAlreadyExistsException", f"rename destination {target} already exists")
        if found is not None:
            self.fs.delete(target)
        self.fs.rename(path, target)
        return 200, b""

    def delete(self, path: str, parameters: dict[str, str], content: bytes) -> dict[str, object]:
        return {"boolean": self.fs.delete(path)}


def chunks(handler: BaseHTTPRequestHandler) -> Iterator[bytes]:
    """The pieces of a chunked request."""
    while size := int(handler.rfile.readline().split(b";")[0], 16):
        yield handler.rfile.read(size)
        handler.rfile.readline()
    handler.rfile.readline()


def answer(handler: BaseHTTPRequestHandler, status: int, content: bytes) -> None:
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)


def remote(exception: str, message: str) -> bytes:
    """An error as WebHDFS writes it."""
    java = f"org.apache.hadoop.{exception}"
    return json.dumps(
        {"RemoteException": {"exception": exception, "javaClassName": java, "message": message}}
    ).encode()


def described(status: FileStatus, suffix: str) -> dict[str, object]:
    return {
        "pathSuffix": suffix,
        "type": "DIRECTORY" if status.is_directory else "FILE",
        "length": status.length_bytes,
        "modificationTime": status.modified_ms,
        "permission": f"{status.permission:o}",
        "owner": status.owner,
    }


@contextmanager
def webhdfs_server(fs: MemoryFileSystem) -> Iterator[WebHdfsServer]:
    server = WebHdfsServer(fs)
    try:
        yield server
    finally:
        server.close()

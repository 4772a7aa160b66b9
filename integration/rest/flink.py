"""Apache Flink's own clients for tests: its command line, and its dashboard with a server for its files.

Nothing of them is changed; both are pointed at a JobManager of yarnflow.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import zipfile
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from mimetypes import guess_type
from pathlib import Path
from typing import Final
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from integration.conftest import ROOT
from integration.rest.client import Rest
from tests.patience import PATIENCE
from yarnflow.spark.launch.java import find_java

#: told to the server behind a proxy by the proxy itself, or of the dashboard's own address
_NOT_PASSED_ON: Final = ("host", "connection", "origin", "referer", "accept-encoding")


@cache
def jars() -> Path:
    """The folder with Flink's jars; the first time they come over the network."""
    done = subprocess.run(
        [sys.executable, "-m", "flink.fetch"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "scripts/lib"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip(), "lib")


@dataclass(frozen=True, slots=True)
class Said:
    """What a command has said, and how it ended."""

    text: str
    status: int


@dataclass(frozen=True, slots=True)
class FlinkCommand:
    """``flink``, as its distribution's script runs it."""

    #: for its configuration, which is empty: all it knows is what a test tells it
    directory: Path
    rest: Rest

    def __call__(self, action: str, *arguments: str | Path) -> Said:
        """Run one action to its end."""
        (self.directory / "config.yaml").touch()
        command = [
            str(find_java().program), "-XX:TieredStopAtLevel=1", "-cp", f"{jars()}/*",
            "org.apache.flink.client.cli.CliFrontend", action, "-m", self.rest.url.removeprefix("http://"),
            *map(str, arguments),
        ]  # fmt: skip
        done = subprocess.run(
            command,
            env={
                **os.environ,
                "FLINK_CONF_DIR": str(self.directory),
                "FLINK_REST_CLIENT_HEADERS": f"Authorization:Bearer {self.rest.token}",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE.command_s,
            check=False,
        )
        return Said(done.stdout, done.returncode)


class FlinkDashboard:
    """Serves the dashboard's files, and passes on everything else to a JobManager, with the token.

    Parameters
    ----------
    directory : Path
        Where the files are unpacked.
    rest : Rest
    """

    def __init__(self, directory: Path, rest: Rest) -> None:
        (archive,) = jars().glob("flink-runtime-web-*.jar")
        with zipfile.ZipFile(archive) as file:
            file.extractall(directory, [name for name in file.namelist() if name.startswith("web/")])

        class Handler(_Handler):
            folder = directory / "web"
            behind = rest

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url: Final = f"http://127.0.0.1:{self._server.server_port}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Close the port."""
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folder: Path
    behind: Rest

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def _answer(self) -> None:
        file = self.folder / (urlsplit(self.path).path.lstrip("/") or "index.html")
        if self.command == "GET" and file.is_file():
            self._send(HTTPStatus.OK, guess_type(file.name)[0] or "", file.read_bytes())
            return
        length = int(self.headers.get("Content-Length") or 0)
        request = Request(
            self.behind.url + self.path,
            data=self.rfile.read(length) if length else None,
            headers={
                "Authorization": f"Bearer {self.behind.token}",
                **{
                    name: value
                    for name, value in self.headers.items()
                    if name.lower() not in _NOT_PASSED_ON and not name.lower().startswith("sec-")
                },
            },
            method=self.command,
        )
        try:
            with urlopen(request, timeout=PATIENCE.answer_s) as answer:
                self._send(answer.status, answer.headers.get("Content-Type", ""), answer.read())
        except HTTPError as error:
            self._send(error.code, error.headers.get("Content-Type", ""), error.read())

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer

    def _send(self, status: int, media_type: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

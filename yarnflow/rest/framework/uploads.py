"""Bodies that are files: they go to the disk while they come, and who sends them is asked first."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request

from yarnflow.rest.framework.errors import RestError
from yarnflow.rest.framework.multipart import FilePart, boundary_of, find_file

#: a body of which nothing comes for so long is given up
PART_TIMEOUT_S: Final = 15.0
#: a body that has not come as a whole by then is, too
WHOLE_TIMEOUT_S: Final = 600.0
#: at the same time; further ones are told to come again
MAX_UPLOADS: Final = 4
#: what surrounds the file in its body
_MAX_AROUND_BYTES: Final = 64 * 1024
_WRITE_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class ReceivedFile:
    """Body of a route that takes a file; the file is gone when the request is answered."""

    #: as the client called it
    name: str
    part: FilePart
    _body: Path

    def save(self, target: Path) -> None:
        """Keep it as a file that is not there yet."""
        self.part.copy(self._body, target)


class Uploads:
    """Receives files.

    Parameters
    ----------
    new_body : callable
        A place for a body while it comes, where no file is yet; may block, raises OSError.
    max_bytes : int
        Of one file.
    """

    def __init__(self, new_body: Callable[[], Path], max_bytes: int) -> None:
        self._new_body = new_body
        self._max_bytes = max_bytes
        self._under_way = 0

    async def receive(self, request: Request, use: Callable[[ReceivedFile], Any]) -> Any:
        """What ``use`` makes of the file in a request.

        Raises
        ------
        RestError
            There is none, it is too large, or it does not come.
        """
        boundary = boundary_of(request.headers.get("content-type", ""))
        if self._under_way >= MAX_UPLOADS:
            raise RestError(503, f"{MAX_UPLOADS} programs are uploaded already; try again")
        self._under_way += 1
        body: Path | None = None
        try:
            body = await asyncio.to_thread(self._new_body)
            await self._receive(request, body)
            part = await asyncio.to_thread(find_file, body, boundary)
            return await use(ReceivedFile(part.name, part, body))
        except OSError as error:
            raise RestError(503, f"the file cannot be kept: {error.strerror} (web.upload.dir)") from None
        finally:
            self._under_way -= 1
            if body is not None:
                body.unlink(missing_ok=True)

    async def _receive(self, request: Request, body: Path) -> None:
        most = self._max_bytes + _MAX_AROUND_BYTES
        too_long = RestError(413, f"the file is larger than {self._max_bytes} bytes (web.upload.max-size)")
        declared = request.headers.get("content-length", "0")
        if not declared.isascii() or not declared.isdecimal() or len(declared) > 18 or int(declared) > most:
            raise too_long
        size, waiting = 0, bytearray()
        descriptor = os.open(body, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            try:
                async with asyncio.timeout(WHOLE_TIMEOUT_S), asyncio.timeout(None) as pause:
                    loop = asyncio.get_running_loop()
                    pause.reschedule(loop.time() + PART_TIMEOUT_S)
                    async for part in request.stream():
                        size += len(part)
                        if size > most:
                            raise too_long
                        waiting += part
                        if len(waiting) >= _WRITE_BYTES:
                            await asyncio.to_thread(file.write, bytes(waiting))
                            waiting.clear()
                        pause.reschedule(loop.time() + PART_TIMEOUT_S)
            except TimeoutError:
                raise RestError(408, "the body did not come in time") from None
            except ClientDisconnect:
                raise RestError(400, "the body did not come as a whole") from None
            await asyncio.to_thread(file.write, bytes(waiting))

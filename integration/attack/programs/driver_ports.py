"""Talk to ports of a driver as its JVM, a browser and an executor would, and print whatever is answered.

Usage: ``driver_ports USER WORDS PORTS [NAME…]``; USER is ``other`` or ``same``, WORDS is ``callback``,
``http`` or ``stream``, PORTS have commas between them, and NAMEs are those of files that Spark may serve.
"""

from __future__ import annotations

import socket
import struct
import sys
from typing import Final

from integration.attack.attacker import become_attacker

#: how long silence is listened to
_SILENCE_S: Final = 1.5
_PROXIES: Final = 4
#: type of Spark's message that asks for a file
_STREAM_REQUEST: Final = 6
#: longest answer that is of interest
_MOST_BYTES: Final = 65536


def main(user: str, words: str, ports: str, *names: str) -> None:
    if user == "other":
        become_attacker()
    said = {
        "callback": [f"c\np{number}\n__repr__\ne\n".encode() for number in range(_PROXIES)],
        "http": [b"GET / HTTP/1.0\r\n\r\n"],
        # all at once: silence behind each answer takes its time
        "stream": [b"".join(map(_stream_request, names))],
    }[words]
    for port in map(int, ports.split(",")):
        for message in said:
            if answer := _answer(port, message):
                print(port, message, "->", answer, flush=True)
            elif words == "callback":
                break


def _answer(port: int, message: bytes) -> bytes:
    """Return what comes until there is silence or an end."""
    answer = b""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=_SILENCE_S) as connection:
            connection.sendall(message)
            while len(answer) < _MOST_BYTES and (more := connection.recv(_MOST_BYTES)):
                answer += more
    except OSError:
        pass
    return answer


def _stream_request(name: str) -> bytes:
    body = name.encode()
    return struct.pack(">qbi", 8 + 1 + 4 + len(body), _STREAM_REQUEST, len(body)) + body


if __name__ == "__main__":
    main(*sys.argv[1:])

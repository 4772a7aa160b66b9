"""Passes one handshake on to a server, and then calls the server in the place of the one who dialled.

Takes the port to listen at, the port of the server, and a method of it without arguments (``Service.name``).
Knows no secret.  Says "listening", and then either what was answered or how it was turned away.
"""

from __future__ import annotations

import socket
import sys
from typing import Any

from integration.attack.attacker import become_attacker
from yarnflow.rpc import framing
from yarnflow.rpc._gen.types import ttypes
from yarnflow.rpc.auth import CHALLENGE_BYTES, MAGIC, NONCE_BYTES, PROOF_BYTES, is_accepted
from yarnflow.rpc.methods import methods_of

#: generated code has no types
_TYPES: Any = ttypes
_HOST = "127.0.0.1"


def receive(connection: socket.socket, size: int) -> bytes:
    """Exactly so many bytes; EOFError if the other end closes before."""
    found = b""
    while len(found) < size:
        if not (data := connection.recv(size - len(found))):
            raise EOFError
        found += data
    return found


def pass_on(dialled: socket.socket, server: socket.socket) -> str:
    """Let both sides prove to each other that they know the secret; how the server refuses it, if it does."""
    hello = receive(dialled, len(MAGIC) + 2 + NONCE_BYTES + 2)
    server.sendall(hello + receive(dialled, int.from_bytes(hello[-2:], "big")))
    dialled.sendall(receive(server, CHALLENGE_BYTES))
    server.sendall(receive(dialled, PROOF_BYTES))
    if not is_accepted(first := receive(server, 1)):
        refused = first
        while data := server.recv(4096):
            refused += data
        # as it would look to who dialled, had nobody stood in between
        dialled.sendall(refused)
        return refused.decode().strip()
    dialled.sendall(first + receive(server, PROOF_BYTES))
    return ""


def call(server: socket.socket, service: str, name: str) -> str:
    """Return what a server answers to a call without arguments."""
    spec = methods_of(service)[name]
    context = _TYPES.TCallContext(fence=_TYPES.TFence("", 0), timeoutMs=5000, requestId="relay")
    body = framing.encode(spec.args_class(context))
    server.sendall(framing.frame(framing.CALL, spec.call_name, 1, body))
    message = receive(server, int.from_bytes(receive(server, framing.LENGTH_BYTES), "big"))
    result = framing.decode(spec.result_class, message, framing.read_header(message).offset)
    return str(result.error or result.success)


def main(own_port: int, server_port: int, method: str) -> None:
    """Wait for a process that dials, and speak for it."""
    become_attacker()
    listening = socket.create_server((_HOST, own_port))
    print("listening", flush=True)
    while True:
        dialled, _ = listening.accept()
        server = socket.create_connection((_HOST, server_port))
        try:
            refused = pass_on(dialled, server)
        except EOFError:
            continue  # who dialled has not begun
        finally:
            dialled.close()
        said = f"turned away: {refused}" if refused else f"let in: {call(server, *method.split('.'))}"
        print(" ".join(said.split()), flush=True)
        return


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])

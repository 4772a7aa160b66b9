"""Mutual proof of the cluster secret at the start of every connection.

Four messages, none of which is deserialised by Thrift::

    client → server   magic, version, client nonce, identity
    server → client   magic, version, server nonce
    client → server   HMAC(secret, "client" + both messages above)
    server → client   ok, HMAC(secret, "server" + both messages above)

The client proves itself first, so a server gives nothing away to somebody who does not know
the secret.  Fresh nonces on both sides make a recorded conversation useless; the labels keep
one side's proof from being sent back as the other's; the HMAC covers version and identity.

Without I/O: the caller feeds bytes and sends what comes back, so that the same code serves an
event loop and a blocking socket.  Never encrypts: whoever can read the network can read the
calls.  Flink counterpart: mutual authentication by ``security.ssl.internal``.
"""

from __future__ import annotations

import hmac
import secrets
import struct
from typing import Final

from yarnflow.errors import (
    AuthenticationFailed,
    RpcError,
    RpcProtocolError,
    RpcUnavailable,
    error_from_code,
)

#: not the start of an HTTP request, a TLS hello or a Thrift message
MAGIC: Final = b"YARNFLOW"
PROTOCOL_VERSION: Final = 1
NONCE_BYTES: Final = 32
PROOF_BYTES: Final = 32
#: longest identity, bytes of UTF-8
MAX_IDENTITY_BYTES: Final = 512
#: longest refusal a client reads
MAX_REFUSAL_BYTES: Final = 1024
CHALLENGE_BYTES: Final = len(MAGIC) + 2 + NONCE_BYTES

_REFUSED: Final = b"yarnflow refused: "
_HELLO_BYTES: Final = len(MAGIC) + 2 + NONCE_BYTES + 2
_OK: Final = b"\x00"
_HTTP_METHODS: Final = (b"GET ", b"POST ", b"HEAD ", b"PUT ", b"DELETE ", b"OPTIONS ", b"CONNECT ")


class Refused(Exception):
    """The server does not go on with a peer.

    Attributes
    ----------
    error : RpcError
        For the log: what is wrong with the peer.
    reply : bytes
        One line for the peer, in HTTP's form if it speaks HTTP.
    """

    def __init__(self, error: RpcError, reply: bytes | None = None) -> None:
        super().__init__(error.message)
        self.error = error
        self.reply = refusal(error) if reply is None else reply


def refusal(error: RpcError) -> bytes:
    """One line that tells a peer why the connection closes."""
    text = " ".join(f"{error.code}: {error.message}".split())
    return _REFUSED + text.encode("utf-8", "replace")[: MAX_REFUSAL_BYTES - 100] + b"\n"


class ServerHandshake:
    """Server's side of one handshake.

    Parameters
    ----------
    secret : bytes
        The cluster secret, not empty.
    peer : str
        ``host:port`` for messages.
    """

    def __init__(self, secret: bytes, peer: str) -> None:
        self._secret = check_secret(secret)
        self._peer = peer
        self._buffer = bytearray()
        self._transcript = b""
        self._expected = b""
        self.identity = ""
        self.done = False

    def feed(self, data: bytes) -> bytes:
        """Take bytes of the peer; give the bytes to send now (maybe none).

        Raises
        ------
        Refused
            The peer is not one of ours: send ``reply`` and close.
        """
        self._buffer += data
        reply = b""
        if not self._transcript:
            reply = self._hello()
        if self._transcript and not self.done and len(self._buffer) >= PROOF_BYTES:
            reply += self._proof()
        return reply

    def rest(self) -> bytes:
        """Bytes that came after the handshake."""
        return bytes(self._buffer)

    def _hello(self) -> bytes:
        got = self._buffer
        seen = min(len(got), len(MAGIC))
        if got[:seen] != MAGIC[:seen]:
            raise self._foreign()
        if len(got) >= len(MAGIC) + 2:
            (version,) = struct.unpack_from("!H", got, len(MAGIC))
            if version != PROTOCOL_VERSION:
                raise Refused(
                    RpcProtocolError(
                        f"{self._peer} speaks version {version} of the yarnflow protocol, this process "
                        f"version {PROTOCOL_VERSION}; install the same yarnflow version on both sides"
                    )
                )
        if len(got) < _HELLO_BYTES:
            return b""
        (length,) = struct.unpack_from("!H", got, _HELLO_BYTES - 2)
        if length > MAX_IDENTITY_BYTES:
            raise Refused(RpcProtocolError(f"{self._peer} announced an identity of {length} bytes"))
        if len(got) < _HELLO_BYTES + length:
            return b""
        hello = bytes(got[: _HELLO_BYTES + length])
        del got[: len(hello)]
        try:
            self.identity = hello[_HELLO_BYTES:].decode()
        except UnicodeDecodeError:
            raise Refused(RpcProtocolError(f"{self._peer} announced an identity that is not text")) from None
        challenge = MAGIC + struct.pack("!H", PROTOCOL_VERSION) + secrets.token_bytes(NONCE_BYTES)
        self._transcript = hello + challenge
        return challenge

    def _proof(self) -> bytes:
        offered = bytes(self._buffer[:PROOF_BYTES])
        del self._buffer[:PROOF_BYTES]
        if not hmac.compare_digest(offered, _mac(self._secret, b"client", self._transcript)):
            raise Refused(_does_not_know(self._peer))
        self.done = True
        return _OK + _mac(self._secret, b"server", self._transcript)

    def _foreign(self) -> Refused:
        start = bytes(self._buffer[:24])
        advice = "use a yarnflow client, and the REST address for a browser"
        if start.startswith(_HTTP_METHODS):
            error = RpcProtocolError(f"{self._peer} sent an HTTP request to a yarnflow RPC port; {advice}")
            body = refusal(error)
            head = (
                "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n"
                f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            )
            return Refused(error, head.encode("ascii") + body)
        return Refused(
            RpcProtocolError(f"{self._peer} sent {start!r}, which is not the yarnflow protocol; {advice}")
        )


class ClientHandshake:
    """Client's side: :meth:`hello`, then :meth:`prove` its answer, then :meth:`verify`.

    Parameters
    ----------
    secret : bytes
        The cluster secret, not empty.
    peer : str
        Address dialled, for messages.
    identity : str
        Who this process is; the server reports it when the connection closes.
    """

    def __init__(self, secret: bytes, peer: str, identity: str = "") -> None:
        self._secret = check_secret(secret)
        self._peer = peer
        name = identity.encode()
        if len(name) > MAX_IDENTITY_BYTES:
            raise RpcProtocolError(f"identity of {len(name)} bytes, at most {MAX_IDENTITY_BYTES} are allowed")
        nonce = secrets.token_bytes(NONCE_BYTES)
        start = MAGIC + struct.pack("!H", PROTOCOL_VERSION) + nonce
        self._transcript = start + struct.pack("!H", len(name)) + name

    def hello(self) -> bytes:
        """First bytes to send."""
        return self._transcript

    def prove(self, challenge: bytes) -> bytes:
        """Answer to the server's challenge of ``CHALLENGE_BYTES`` bytes."""
        (version,) = struct.unpack_from("!H", challenge, len(MAGIC))
        if not challenge.startswith(MAGIC) or version != PROTOCOL_VERSION:
            raise RpcProtocolError(
                f"{self._peer} answered with version {version} of the yarnflow protocol, this process speaks "
                f"{PROTOCOL_VERSION}; install the same yarnflow version on both sides"
            )
        self._transcript += challenge
        return _mac(self._secret, b"client", self._transcript)

    def verify(self, proof: bytes) -> None:
        """Check the server's own proof.

        Raises
        ------
        AuthenticationFailed
            The server does not know the secret; nothing may be sent to it.
        """
        if not hmac.compare_digest(proof, _mac(self._secret, b"server", self._transcript)):
            raise _does_not_know(self._peer)


def is_accepted(first: bytes) -> bool:
    """Whether the byte before the server's proof says that the client's was right."""
    return first == _OK


def explain_answer(peer: str, answer: bytes) -> RpcError:
    """Error for an answer that is not the next step of the handshake."""
    if answer.startswith(_REFUSED):
        code, _, message = answer[len(_REFUSED) :].decode("utf-8", "replace").strip().partition(": ")
        error = error_from_code(code, f"{peer} refused the connection: {message}")
        return error if isinstance(error, RpcError) else RpcProtocolError(error.message)
    if not answer:
        return RpcUnavailable(
            f"{peer} closed the connection during the handshake; check that the process there is up"
        )
    return RpcProtocolError(
        f"{peer} is not a yarnflow RPC server, it answered {answer[:24]!r}; check the address and the port"
    )


def check_secret(secret: bytes) -> bytes:
    """The secret, if it is one.

    Raises
    ------
    AuthenticationFailed
        It is empty.
    """
    if not secret:
        raise AuthenticationFailed(
            "the cluster secret is empty; check the secret file (option security.cluster-secret-file)"
        )
    return secret


def _does_not_know(peer: str) -> AuthenticationFailed:
    return AuthenticationFailed(
        f"{peer} does not know the cluster secret; "
        "check that both processes read the same secret file (option security.cluster-secret-file)"
    )


def _mac(secret: bytes, side: bytes, transcript: bytes) -> bytes:
    return hmac.digest(secret, b"yarnflow rpc " + side + b"\x00" + transcript, "sha256")

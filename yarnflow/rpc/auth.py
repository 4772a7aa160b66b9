"""Mutual proof of the cluster secret at the start of every connection.

Four messages, none of which is deserialised by Thrift::

    client → server   magic, version, client nonce, identity and names
    server → client   magic, version, server nonce
    client → server   HMAC(secret, "client" + both messages above)
    server → client   ok, HMAC(secret, "server" + both messages above)

The client proves itself first, so a server gives nothing away to somebody who does not know
the secret.  Fresh nonces on both sides make a recorded conversation useless; the labels keep
one side's proof from being sent back as the other's; the HMAC covers version, identity and names.

The names (:mod:`~yarnflow.rpc.member`) are the client's role, the role it wants to speak to, its cluster,
the address it dialled and the numeric one it reached by that.  A server that has checked the proof goes on
only if all of this fits itself, so its own proof says so to the client.  Whoever passes the messages on, to
the process that sent them or to another one, gets no proof of anybody: the roles are others, or the
connection has come in at another address than the one the client reached.  Where addresses are translated
in between, ``security.translated-addresses`` of the server names what may be dialled instead.

What remains: nothing is encrypted and calls carry no proof of their own.  Whoever controls the network or
the name service, so that a connection to the address dialled runs through his machine, can read and change
what follows the handshake; so can whoever stands where ``security.translated-addresses`` lets connections be
passed on.  User code runs as the cluster's user and can read the secret: roles keep connections
apart and do not confine a job's program.

Without I/O: the caller feeds bytes and sends what comes back, so that the same code serves an
event loop and a blocking socket.  Flink counterpart: mutual authentication by ``security.ssl.internal``.
"""

from __future__ import annotations

import hmac
import secrets
import struct
from collections.abc import Collection
from typing import Final

from yarnflow.errors import (
    AuthenticationFailed,
    RpcError,
    RpcProtocolError,
    RpcUnavailable,
    WrongProcess,
    error_from_code,
)
from yarnflow.rpc.member import ANY_PORT, CALLERS, Destination, Member

#: not the start of an HTTP request, a TLS hello or a Thrift message
MAGIC: Final = b"YARNFLOW"
PROTOCOL_VERSION: Final = 2
NONCE_BYTES: Final = 32
PROOF_BYTES: Final = 32
#: longest identity, bytes of UTF-8
MAX_IDENTITY_BYTES: Final = 512
#: longest identity and names together
MAX_ANNOUNCED_BYTES: Final = 4096
#: longest refusal a client reads
MAX_REFUSAL_BYTES: Final = 4096
CHALLENGE_BYTES: Final = len(MAGIC) + 2 + NONCE_BYTES

_REFUSED: Final = b"yarnflow refused: "
_HELLO_BYTES: Final = len(MAGIC) + 2 + NONCE_BYTES + 2
#: identity, role of the client, role it wants, cluster, dialled, reached
_ANNOUNCED: Final = 6
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
    member : Member
        This process.
    local : str
        :func:`~yarnflow.rpc.member.numeric` address that the connection has come in at.
    peer : str
        ``host:port`` for messages.
    translated : collection of str
        ``host:port`` or ``host:*`` that a client may have dialled to get here, whatever it has reached.
    """

    def __init__(self, member: Member, local: str, peer: str, translated: Collection[str] = ()) -> None:
        self._member = member
        self._local = local
        self._peer = peer
        self._translated = translated
        self._buffer = bytearray()
        self._transcript = b""
        self._expected = b""
        self._announced: list[str] = []
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
        if length > MAX_ANNOUNCED_BYTES:
            raise Refused(RpcProtocolError(f"{self._peer} announced itself in {length} bytes"))
        if len(got) < _HELLO_BYTES + length:
            return b""
        hello = bytes(got[: _HELLO_BYTES + length])
        del got[: len(hello)]
        try:
            self._announced = _unpack(hello[_HELLO_BYTES:])
        except ValueError:
            raise Refused(
                RpcProtocolError(f"{self._peer} announced itself by what is not {_ANNOUNCED} texts")
            ) from None
        self.identity = self._announced[0]
        challenge = MAGIC + struct.pack("!H", PROTOCOL_VERSION) + secrets.token_bytes(NONCE_BYTES)
        self._transcript = hello + challenge
        return challenge

    def _proof(self) -> bytes:
        offered = bytes(self._buffer[:PROOF_BYTES])
        del self._buffer[:PROOF_BYTES]
        secret = self._member.secret
        if not hmac.compare_digest(offered, _mac(secret, b"client", self._transcript)):
            raise Refused(_does_not_know(self._peer))
        # not before: who does not know the secret is not told who this is
        if advice := self._why_not_meant():
            raise Refused(WrongProcess(f"{self._whom_it_wants()}; {advice}"))
        self.done = True
        return _OK + _mac(secret, b"server", self._transcript)

    def _why_not_meant(self) -> str:
        """Return what to do, if the client means another process than this one; empty = it means this one."""
        _, caller, wanted, cluster_id, dialled, reached = self._announced
        own = self._member
        if wanted != own.role.value:
            return f"check which process listens at {dialled}, and whether something passes connections on"
        if caller not in [role.value for role in CALLERS[own.role]]:
            return f"no {caller} calls a {own.role.value}"
        if cluster_id and cluster_id != own.cluster_id:
            return "set high-availability.cluster-id to the same name on both sides, or check the address"
        if reached != self._local and not self._is_translated(dialled.lower()):
            return (
                f"check which process listens at {dialled}: it passes connections on; if addresses are "
                f"translated on the way, name {dialled} in security.translated-addresses of the process here"
            )
        return ""

    def _is_translated(self, dialled: str) -> bool:
        host = dialled.rpartition(":")[0]
        return dialled in self._translated or f"{host}:{ANY_PORT}" in self._translated

    def _whom_it_wants(self) -> str:
        _, caller, wanted, cluster_id, dialled, reached = self._announced
        cluster = f" of cluster {cluster_id!r}" if cluster_id else ""
        own = self._member
        there = dialled if dialled == reached else f"{dialled} ({reached})"
        return (
            f"the {caller} at {self._peer} wants the {wanted}{cluster} at {there}, and here is the "
            f"{own.role.value} of cluster {own.cluster_id!r} at {self._local}"
        )

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
    member : Member
        This process.
    destination : Destination
        The process it means.
    identity : str
        Who this process is; the server reports it when the connection closes.
    """

    def __init__(self, member: Member, destination: Destination, identity: str = "") -> None:
        self._secret = member.secret
        self._peer = destination.dialled
        size = len(identity.encode())
        if size > MAX_IDENTITY_BYTES:
            raise RpcProtocolError(f"identity of {size} bytes, at most {MAX_IDENTITY_BYTES} are allowed")
        announced = _pack(
            identity,
            member.role.value,
            destination.role.value,
            member.cluster_id,
            destination.dialled,
            destination.reached,
        )
        if len(announced) > MAX_ANNOUNCED_BYTES:
            raise RpcProtocolError(
                f"cluster id, address and identity have {len(announced)} bytes together, at most "
                f"{MAX_ANNOUNCED_BYTES} are allowed; shorten high-availability.cluster-id"
            )
        nonce = secrets.token_bytes(NONCE_BYTES)
        start = MAGIC + struct.pack("!H", PROTOCOL_VERSION) + nonce
        self._transcript = start + struct.pack("!H", len(announced)) + announced

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


def _does_not_know(peer: str) -> AuthenticationFailed:
    return AuthenticationFailed(
        f"{peer} does not know the cluster secret; "
        "check that both processes read the same secret file (option security.cluster-secret-file)"
    )


def _pack(*texts: str) -> bytes:
    parts = [text.encode() for text in texts]
    return b"".join(struct.pack("!H", len(part)) + part for part in parts)


def _unpack(content: bytes) -> list[str]:
    """Return what :func:`_pack` was given; ValueError for anything that it does not make."""
    texts = []
    while content:
        end = 2 + int.from_bytes(content[:2], "big")
        if len(content) < max(end, 2):
            raise ValueError
        texts.append(content[2:end].decode())
        content = content[end:]
    if len(texts) != _ANNOUNCED:
        raise ValueError
    return texts


def _mac(secret: bytes, side: bytes, transcript: bytes) -> bytes:
    return hmac.digest(secret, b"yarnflow rpc " + side + b"\x00" + transcript, "sha256")

"""Bytes of one call: a 4-byte length, then one message of Thrift's binary protocol.

After the handshake the stream is what Thrift's framed transport with its multiplexed protocol
makes, so any Thrift library could read it.  The header is packed here by hand because the
pure-Python path of the library costs more than all the rest of a heartbeat; the structs go
through its C extension.
"""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.Thrift import TApplicationException
from thrift.transport.TTransport import TMemoryBuffer

from yarnflow.errors import RpcProtocolError

#: as ``rpc.framesize``
DEFAULT_MAX_FRAME_BYTES: Final = 64 * 1024 * 1024
LENGTH_BYTES: Final = 4

CALL: Final = 1
REPLY: Final = 2
EXCEPTION: Final = 3

_VERSION_1: Final = 0x80010000
_HEAD: Final = struct.Struct("!IIi")
_INT: Final = struct.Struct("!i")
#: longest "Service:method"
_MAX_NAME_BYTES: Final = 256


class Header(NamedTuple):
    """Start of a message."""

    #: CALL, REPLY or EXCEPTION
    kind: int
    #: "Service:method" in a call, "method" in an answer
    name: str
    sequence: int
    #: where the struct begins
    offset: int


def frame(kind: int, name: str, sequence: int, body: bytes) -> bytes:
    """One message with its length before it; ``body`` is an encoded struct."""
    text = name.encode()
    size = 12 + len(text) + len(body)
    return b"".join((_HEAD.pack(size, _VERSION_1 | kind, len(text)), text, _INT.pack(sequence), body))


def read_header(message: bytes) -> Header:
    """Header of a message without its length.

    Raises
    ------
    RpcProtocolError
        These bytes are no message of Thrift's strict binary protocol.
    """
    try:
        version, length = struct.unpack_from("!II", message)
        if version & 0xFFFFFF00 != _VERSION_1 or length > _MAX_NAME_BYTES:
            raise RpcProtocolError(f"{message[:24]!r} is no Thrift message")
        name = message[8 : 8 + length].decode()
        (sequence,) = _INT.unpack_from(message, 8 + length)
    except (struct.error, UnicodeDecodeError):
        raise RpcProtocolError(f"{message[:24]!r} is no Thrift message") from None
    return Header(version & 0xFF, name, sequence, 12 + length)


def encode(value: Any) -> bytes:
    """Bytes of a generated struct.

    Raises
    ------
    RpcProtocolError
        A field holds something Thrift cannot carry (an integer above 64 bits, half a surrogate).
    """
    buffer = TMemoryBuffer()
    try:
        value.write(TBinaryProtocolAccelerated(buffer, fallback=False))
    except (TypeError, ValueError, OverflowError, AttributeError) as exc:
        raise RpcProtocolError(f"{type(value).__name__} cannot be encoded: {exc}") from exc
    return bytes(buffer.getvalue())


def decode(cls: Any, message: bytes, offset: int) -> Any:
    """Generated struct from the bytes behind a header.

    Raises
    ------
    RpcProtocolError
        The bytes are not this struct.
    """
    # nothing inside a message can be longer than the message: no length field makes us allocate more
    protocol = TBinaryProtocolAccelerated(
        TMemoryBuffer(message, offset),
        string_length_limit=len(message),
        container_length_limit=len(message),
        fallback=False,
    )
    try:
        value = cls()
        value.read(protocol)
    except Exception as exc:  # whatever the C extension makes of garbage
        raise RpcProtocolError(f"{cls.__name__} cannot be decoded: {type(exc).__name__}: {exc}") from exc
    return value


def unknown_method(name: str, sequence: int) -> bytes:
    """Thrift's own answer to a call nobody here serves."""
    text = f"this process has no method {name}"
    error = TApplicationException(TApplicationException.UNKNOWN_METHOD, text)
    return frame(EXCEPTION, name.rpartition(":")[2], sequence, encode(error))


def application_error(message: bytes, offset: int) -> str:
    """Text of Thrift's own exception message."""
    error = decode(TApplicationException, message, offset)
    return str(error.message)


def require_fastbinary() -> None:
    """Check that Thrift's C extension is installed.

    Raises
    ------
    RpcProtocolError
        It is not; without it a JobManager cannot serve a large cluster.
    """
    try:
        import thrift.protocol.fastbinary  # noqa: F401
    except ImportError as exc:
        raise RpcProtocolError(
            "the thrift package has no C extension (thrift.protocol.fastbinary); "
            "install a C compiler and then thrift again, from source"
        ) from exc

"""An error of yarnflow as Flink's client reads it: a serialized Java exception.

Flink's client refuses an answer with a failure that has none.  Only the one class is written that it expects,
``SerializedThrowable``, whose content are texts; the form is that of Java's object serialization.
"""

from __future__ import annotations

import base64
from typing import Final

#: longest text of Java's short form, with room for three bytes per character
_MAX_CHARACTERS: Final = 21_000
_NULL, _STRING, _END_BLOCK = b"p", b"t", b"x"


def _name(text: str) -> bytes:
    return len(text).to_bytes(2, "big") + text.encode("ascii")


#: stream header, then the descriptions of SerializedThrowable, Exception and Throwable with their fields
_HEAD: Final = b"".join(
    (
        b"\xac\xed\x00\x05",
        b"sr" + _name("org.apache.flink.util.SerializedThrowable"),
        bytes.fromhex("65169df51fa713f3") + b"\x02\x00\x03",
        b"L" + _name("fullStringifiedStackTrace") + _STRING + _name("Ljava/lang/String;"),
        b"L" + _name("originalErrorClassName") + b"q\x00\x7e\x00\x01",
        b"[" + _name("serializedException") + _STRING + _name("[B") + _END_BLOCK,
        b"r" + _name("java.lang.Exception") + bytes.fromhex("d0fd1f3e1a3b1cc4") + b"\x02\x00\x00",
        _END_BLOCK,
        b"r" + _name("java.lang.Throwable") + bytes.fromhex("d5c635273977b8cb") + b"\x03\x00\x04",
        b"L" + _name("cause") + _STRING + _name("Ljava/lang/Throwable;"),
        b"L" + _name("detailMessage") + b"q\x00\x7e\x00\x01",
        b"[" + _name("stackTrace") + _STRING + _name("[Ljava/lang/StackTraceElement;"),
        b"L" + _name("suppressedExceptions") + _STRING + _name("Ljava/util/List;") + _END_BLOCK + _NULL,
    )
)


def serialized_throwable(class_name: str, message: str, stack_trace: str) -> str:
    """Base64 of an exception without a cause.

    Parameters
    ----------
    class_name : str
        What it is called.
    message, stack_trace : str
        What the client shows.
    """
    of_throwable = _NULL + _text(message) + _NULL + _NULL + _END_BLOCK
    return base64.b64encode(_HEAD + of_throwable + _text(stack_trace) + _text(class_name) + _NULL).decode()


def _text(text: str) -> bytes:
    """In Java's modified UTF-8: characters beyond the first 65,536 are two, and 0 is none."""
    units = text.encode("utf-16-be", "surrogatepass")[: 2 * _MAX_CHARACTERS]
    characters = "".join(chr(int.from_bytes(units[at : at + 2], "big")) for at in range(0, len(units), 2))
    content = characters.encode("utf-8", "surrogatepass").replace(b"\0", b"\xc0\x80")
    return _STRING + len(content).to_bytes(2, "big") + content

"""An error as Flink's client reads it."""

from __future__ import annotations

import base64

from yarnflow.rest.answers.java_throwable import serialized_throwable

#: read by Java's own ObjectInputStream as message "m \u00e4\U0001f600\0", class C and stack trace "t"
RECORDED = (
    "rO0ABXNyAClvcmcuYXBhY2hlLmZsaW5rLnV0aWwuU2VyaWFsaXplZFRocm93YWJsZWUWnfUfpxPzAgADTAAZZnVsbFN0cmluZ2lm"
    "aWVkU3RhY2tUcmFjZXQAEkxqYXZhL2xhbmcvU3RyaW5nO0wAFm9yaWdpbmFsRXJyb3JDbGFzc05hbWVxAH4AAVsAE3NlcmlhbGl6"
    "ZWRFeGNlcHRpb250AAJbQnhyABNqYXZhLmxhbmcuRXhjZXB0aW9u0P0fPho7HMQCAAB4cgATamF2YS5sYW5nLlRocm93YWJsZdXG"
    "NSc5d7jLAwAETAAFY2F1c2V0ABVMamF2YS9sYW5nL1Rocm93YWJsZTtMAA1kZXRhaWxNZXNzYWdlcQB+AAFbAApzdGFja1RyYWNl"
    "dAAeW0xqYXZhL2xhbmcvU3RhY2tUcmFjZUVsZW1lbnQ7TAAUc3VwcHJlc3NlZEV4Y2VwdGlvbnN0ABBMamF2YS91dGlsL0xpc3Q7"
    "eHBwdAAMbSDDpO2gve24gMCAcHB4dAABdHQAAUNw"
)


def test_it_is_what_java_has_read() -> None:
    assert serialized_throwable("C", "m \u00e4\U0001f600\0", "t") == RECORDED


def test_any_text_fits_into_javas_short_form() -> None:
    for text in ("\uffff" * 70_000, "\U0001f600" * 70_000, "\udc80" * 70_000, ""):
        assert len(base64.b64decode(serialized_throwable("C", text, ""))) < 64_000 + 600

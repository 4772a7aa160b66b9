"""What users' functions raise, with the element and operator it was raised for."""

from __future__ import annotations

from typing import Final

_SHOWN_CHARACTERS: Final = 200


def note(error: Exception, operator_name: str, what: str, value: object) -> None:
    """Note at an exception which operator raised it, and what it was given.

    A note leaves type, cause and traceback as the user knows them; Python prints it below the message.
    """
    error.add_note(f"operator '{operator_name}': {what} {shown(value)}")


def shown(value: object) -> str:
    """A value's repr, cut where it is long; its own repr may fail as well."""
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__} without repr>"
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + " …"

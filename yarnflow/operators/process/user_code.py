"""What users' functions raise, with the element and operator it was raised for."""

from __future__ import annotations

from typing import Final

_SHOWN_CHARACTERS: Final = 200


def noted(error: Exception, operator_name: str, what: str, value: object) -> Exception:
    """The same exception with a note that names the operator and what it was given.

    A note leaves type, cause and traceback as the user knows them; Python prints it below the message.
    To be raised without ``from``, which would replace the cause.
    """
    error.add_note(f"operator '{operator_name}': {what} {shown(value)}")
    return error


def shown(value: object) -> str:
    """A value's repr, cut where it is long; its own repr may fail as well."""
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__} without repr>"
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + " …"

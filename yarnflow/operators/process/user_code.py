"""What users' functions raise, with the element and operator it was raised for."""

from __future__ import annotations

from typing import Any, Final

from yarnflow.errors import ElementMismatch

_SHOWN_CHARACTERS: Final = 200


def noted(error: Exception, operator_name: str, what: str, value: object) -> Exception:
    """The same exception with a note that names the operator and what it was given.

    A note leaves type, cause and traceback as the user knows them; Python prints it below the message.
    To be raised without ``from``, which would replace the cause.
    """
    error.add_note(f"operator '{operator_name}': {what} {shown(value)}")
    return error


def placed(error: Exception, origin: str) -> Exception:
    """The same exception with a note that names the program's line, for errors whose traceback does not."""
    error.add_note(f"at {origin}")
    return error


def or_wrong_shape(error: Exception, found: Any) -> Exception:
    """The error, or a clear one where a function gave what is no iterable of results.

    Parameters
    ----------
    found : object
        What the function gave last.
    """
    if not isinstance(error, TypeError) or found is None or hasattr(found, "__iter__"):
        return error
    return ElementMismatch(
        f"the function returned {shown(found)} ({type(found).__name__}), but any number of results is "
        "needed; yield each of them, or return a list"
    )


def shown(value: object) -> str:
    """A value's repr, cut where it is long; its own repr may fail as well."""
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__} without repr>"
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + " …"

"""Settings of a program as key and text.  PyFlink: ``pyflink.common.configuration``.

Decides nothing about keys: those yarnflow declares take effect when the configuration is given to
an environment, which says so of those it does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Configuration:
    """Key → value; read as text or as another type, whatever it was set as."""

    def __init__(self, other: Configuration | None = None) -> None:
        #: as they were set
        self._values: dict[str, Any] = {} if other is None else dict(other._values)

    @classmethod
    def from_dict(cls, map: Mapping[str, str]) -> Configuration:
        """A configuration of these values."""
        made = cls()
        made._values = {str(key): str(value) for key, value in map.items()}
        return made

    # --- values -------------------------------------------------------------------

    def _set(self, key: str, value: object) -> Configuration:
        self._values[key] = value
        return self

    def _text(self, key: str) -> str:
        return _as_text(self._values[key])

    def get_string(self, key: str, default_value: str) -> str:
        """The text of a key."""
        return self._text(key) if key in self._values else default_value

    def set_string(self, key: str, value: str) -> Configuration:
        """Set text."""
        return self._set(key, str(value))

    def get_integer(self, key: str, default_value: int) -> int:
        """The whole number of a key.  Raises ValueError if it is none."""
        return int(self._text(key)) if key in self._values else default_value

    def set_integer(self, key: str, value: int) -> Configuration:
        """Set a whole number."""
        return self._set(key, int(value))

    def get_boolean(self, key: str, default_value: bool) -> bool:
        """Whether the text of a key is ``true``.  Raises ValueError if it is neither that nor ``false``."""
        if key not in self._values:
            return default_value
        text = self._text(key).lower()
        if text not in ("true", "false"):
            raise ValueError(f"option {key}: '{text}' is neither true nor false")
        return text == "true"

    def set_boolean(self, key: str, value: bool) -> Configuration:
        """Set ``true`` or ``false``."""
        return self._set(key, bool(value))

    def get_float(self, key: str, default_value: float) -> float:
        """The number of a key.  Raises ValueError if it is none."""
        return float(self._text(key)) if key in self._values else float(default_value)

    def set_float(self, key: str, value: float) -> Configuration:
        """Set a number."""
        return self._set(key, float(value))

    def get_bytearray(self, key: str, default_value: bytearray) -> bytearray:
        """The bytes of a key."""
        if key not in self._values:
            return bytearray(default_value)
        return bytearray(self._text(key).encode("latin-1"))

    def set_bytearray(self, key: str, value: bytearray) -> Configuration:
        """Set bytes."""
        return self._set(key, bytearray(value))

    @staticmethod
    def parse_list_value(value: str) -> list[Any]:
        """A YAML list such as ``[a, b]``, or parts between semicolons."""
        if not value:
            return []
        from yarnflow.config.conf_file import read_list

        found = read_list(value)
        if found is not None:
            return found
        return value.split(";")

    # --- the whole --------------------------------------------------------------------

    def key_set(self) -> set[str]:
        """All keys."""
        return set(self._values)

    def contains_key(self, key: str) -> bool:
        """Whether a key is set."""
        return key in self._values

    def remove_config(self, key: str) -> bool:
        """Remove a key; whether it was set."""
        return self._values.pop(key, None) is not None

    def to_dict(self) -> dict[str, str]:
        """Key → text."""
        return {key: self._text(key) for key in self._values}

    def add_all_to_dict(self, target_dict: dict[str, Any]) -> None:
        """Copy all values into a dict, as they were set."""
        target_dict.update(self._values)

    def add_all(self, other: Configuration, prefix: str | None = None) -> Configuration:
        """Take all values of another configuration, with a prefix before their keys."""
        self._values.update({f"{prefix or ''}{key}": value for key, value in other._values.items()})
        return self

    def __deepcopy__(self, memodict: object = None) -> Configuration:
        return Configuration(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configuration) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(frozenset(self.to_dict().items()))

    def __str__(self) -> str:
        return "{" + ", ".join(f"{key}={text}" for key, text in self.to_dict().items()) + "}"


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytearray):
        return value.decode("latin-1")
    return str(value)

"""Options a program declares for itself.  PyFlink: ``pyflink.common.config_options``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class ConfigOption(Generic[T]):
    """A key, the type of its values and its default."""

    key: str
    value_type: type[Any] = str
    default: T | None = None


class ConfigOptions:
    """Begins the declaration of an option."""

    @staticmethod
    def key(key: str) -> ConfigOptions.OptionBuilder:
        """Declare an option by its key."""
        return ConfigOptions.OptionBuilder(key)

    class OptionBuilder:
        """Says the type of the values."""

        def __init__(self, key: str) -> None:
            self._key = key

        def _typed(self, kind: type[Any]) -> ConfigOptions.TypedConfigOptionBuilder[Any]:
            return ConfigOptions.TypedConfigOptionBuilder(self._key, kind)

        def boolean_type(self) -> ConfigOptions.TypedConfigOptionBuilder[bool]:
            """True or False."""
            return self._typed(bool)

        def int_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            """A whole number."""
            return self._typed(int)

        def long_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            """A whole number."""
            return self._typed(int)

        def float_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            """A number."""
            return self._typed(float)

        def double_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            """A number."""
            return self._typed(float)

        def string_type(self) -> ConfigOptions.TypedConfigOptionBuilder[str]:
            """Text."""
            return self._typed(str)

    class TypedConfigOptionBuilder(Generic[T]):
        """Says the default."""

        def __init__(self, key: str, value_type: type[Any]) -> None:
            self._key = key
            self._value_type = value_type

        def default_value(self, value: T) -> ConfigOption[T]:
            """The option, with a value where none is set."""
            return ConfigOption(self._key, self._value_type, value)

        def no_default_value(self) -> ConfigOption[T]:
            """The option, with None where no value is set."""
            return ConfigOption(self._key, self._value_type)

"""The keys of elements on a route, and their groups; errors name the element and the key selector."""

from __future__ import annotations

from typing import Any

from yarnflow.errors import InvalidKey
from yarnflow.operators.process.key_selection import SelectKeys
from yarnflow.operators.process.user_code import noted, placed, shown
from yarnflow.operators.task.key_groups import KeyGroups, key_group
from yarnflow.operators.task.plan import ExchangeRoute, SinkRoute


class RouteKeys:
    """Keys of the elements that go one way.

    Parameters
    ----------
    route : ExchangeRoute or SinkRoute
        Its ``groups`` are key groups, or the subtasks of what has no keyed state.
    select : callable
        ``f(elements) -> keys``.
    """

    def __init__(self, route: ExchangeRoute | SinkRoute, select: SelectKeys) -> None:
        self._route = route
        self._select = select
        self._groups = KeyGroups(route.groups)

    def select(self, values: list[Any]) -> list[Any]:
        """Return the key of each element."""
        try:
            return self._select(values)
        except Exception as error:
            raise self._noted(error, self._without_key(values))

    def groups(self, keys: list[Any]) -> list[int]:
        """Return the group of each key.

        Raises
        ------
        InvalidKey
            One of them cannot be a key.
        """
        group_of = self._groups
        try:
            return [group_of[key] for key in keys]
        except (InvalidKey, TypeError) as error:
            raise self._invalid(keys, error) from None

    def _without_key(self, values: list[Any]) -> Any:
        """Return the first element whose key cannot be told, found again when all else is over."""
        for value in values:
            try:
                self._select([value])
            except Exception:
                return value
        return values[-1]

    def _noted(self, error: Exception, value: Any) -> Exception:
        noted(error, self._route.sender, "the key of element", value)
        return error if self._route.selector is None else placed(error, self._route.selector.origin)

    def _invalid(self, keys: list[Any], error: Exception) -> Exception:
        """Return the error that names the key; anything else that went wrong as it is."""
        for key in keys:
            try:
                hash(key)
                key_group(key, 1)
            except (InvalidKey, TypeError) as reason:
                kind = type(key).__name__
                text = f"an object of type {kind} cannot be hashed; return a tuple, text or number"
                if isinstance(reason, InvalidKey):
                    text = reason.message
                where = "" if self._route.selector is None else f"{self._route.selector.origin}: key_by(): "
                return InvalidKey(f"{where}key {shown(key)} of an element of '{self._route.sender}': {text}")
        return error

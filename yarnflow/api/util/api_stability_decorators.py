"""Marks of how stable a name is.  PyFlink: ``pyflink.util.api_stability_decorators``."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


class BaseAPIStabilityDecorator:
    """Leaves what it marks as it is."""

    def __call__(self, func_or_cls: T) -> T:
        return func_or_cls


class Deprecated(BaseAPIStabilityDecorator):
    """Will go."""

    def __init__(self, since: str, detail: str | None = None) -> None:
        self.since = since
        self.detail = detail


class Experimental(BaseAPIStabilityDecorator):
    """May change at any time."""


class Internal(BaseAPIStabilityDecorator):
    """Not for programs."""


class PublicEvolving(BaseAPIStabilityDecorator):
    """May change with minor releases."""


class Public(BaseAPIStabilityDecorator):
    """Stays."""

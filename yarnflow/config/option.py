"""One typed declaration per option.

Flink counterpart: ``ConfigOption`` / ``ConfigOptions``.  The declarations live under
:mod:`yarnflow.config.options`; documentation and ``conf/`` are generated from them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Scope(Enum):
    """Whose behaviour an option changes."""

    CLIENT = "client"
    #: the application on YARN that a command makes
    DEPLOYMENT = "deployment"
    CLUSTER = "cluster"
    TASK_MANAGER = "taskmanager"
    JOB = "job"


@dataclass(frozen=True)
class ConfigOption(Generic[T]):
    """One option.

    Attributes
    ----------
    key : str
        Flink's key where the meaning is Flink's.
    parse : callable
        Text → value; raises ``ValueError`` with the expected form as message.
    default : T
        The value when nothing is set.
    type_name : str
        For documentation: ``Duration``, ``MemorySize``, ``Integer``, ``Enum`` …
    unit : str
        Unit of the parsed value (``ms``, ``MiB``), empty if none.
    default_text : str
        The default as a user would write it, for documentation.
    """

    key: str
    parse: Callable[[str], T]
    default: T
    type_name: str
    description: str
    scope: Scope
    unit: str = ""
    since: str = "0.1"
    secret: bool = False
    deprecated_keys: tuple[str, ...] = field(default=())
    default_text: str = ""

    def __hash__(self) -> int:
        return hash(self.key)


AnyOption = ConfigOption[Any]

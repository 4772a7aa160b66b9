"""Tags of side outputs."""

from __future__ import annotations

from types import NoneType
from typing import Any

from yarnflow.graph.compatibility import NO_JVM, refused
from yarnflow.graph.type_info import PICKLED, TypeInformation


class OutputTag:
    """Names a side output: a function yields ``tag, value`` to put an element there.

    Parameters
    ----------
    tag_id : str
        Unique among the tags of an operator.
    type_info : object, optional
        Type of its elements; a list of types is a row of them.  None: any Python objects.

    Raises
    ------
    ValueError
        The id is empty.
    TypeError
        The type is no type.
    """

    __slots__ = ("tag_id", "type_info")

    def __init__(self, tag_id: str, type_info: Any = None) -> None:
        if not tag_id:
            raise ValueError("the id of an OutputTag cannot be empty; name the side output")
        if not isinstance(type_info, (NoneType, list, str, type, TypeInformation)):
            raise TypeError(
                f"side output '{tag_id}': {type_info!r} is no type; take one of Types, such as Types.STRING()"
            )
        self.tag_id = tag_id
        self.type_info = PICKLED if type_info is None else type_info

    @refused(NO_JVM)
    def get_java_output_tag(self) -> Any:
        """Flink's Java object."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutputTag) and other.tag_id == self.tag_id

    def __hash__(self) -> int:
        return hash(self.tag_id)

    def __repr__(self) -> str:
        return f"OutputTag({self.tag_id!r})"

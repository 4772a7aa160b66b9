"""The settings of one program, typed access to them, and those of PyFlink without a counterpart."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Mapping
from typing import Any, TypeVar

from yarnflow.api.executor import surrounding_configuration, surrounding_parallelism
from yarnflow.api.origin import call_origin
from yarnflow.config.option import ConfigOption
from yarnflow.config.options import OPTIONS_BY_KEY, PASSED_THROUGH, job
from yarnflow.errors import InvalidOption

T = TypeVar("T")


class JobSettings:
    """Options set in the program, over those of the command that runs it.

    Attributes
    ----------
    values : dict
        Key → text, all declared or of Spark.
    batch : bool
        Keyed reductions emit one result per key, at the end.
    accepted : dict
        PyFlink's settings that change nothing here, kept so that they can be read back.
    """

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        #: keyed reductions emit their last results only; set when a job is made
        self.batch = False
        self.accepted: dict[str, Any] = {}
        #: what the workers need beside the functions: name → content
        self.files: dict[str, bytes] = {}

    def set_text(self, key: str, value: object) -> None:
        """Set an option (or one of Spark's) by its key.

        Raises
        ------
        UnknownOption, InvalidOption
            With the line of the program.
        """
        from yarnflow.config.configuration import Configuration

        text = str(value).lower() if isinstance(value, bool) else str(value)
        checked = Configuration.empty().with_values({key: text}, source=call_origin())
        for note in checked.notes:
            warnings.warn(f"option {note}", stacklevel=3)
        # under the key it has now
        self.values.update(checked.to_dict())

    def set(self, option: ConfigOption[Any], value: object) -> None:
        """Set an option; durations as milliseconds."""
        self.set_text(option.key, f"{value} ms" if option.unit == "ms" else value)

    def take_over(self, configuration: Mapping[str, str]) -> None:
        """Set what a Flink configuration says, as far as it means something here.

        Keys that mean nothing are named in a warning and change nothing.

        Raises
        ------
        InvalidOption
            A value that does not parse.
        UnsupportedGraph
            A setting that would change results.
        """
        for key, value in configuration.items():
            text = str(value)
            if key in OPTIONS_BY_KEY or key.startswith(PASSED_THROUGH):
                self.set_text(key, text)
            else:
                self.accepted[key] = text
                near = difflib.get_close_matches(key, OPTIONS_BY_KEY, n=1)
                hint = f"; did you mean {near[0]}?" if near else ""
                said = f"option {key} means nothing to yarnflow and is ignored{hint}"
                warnings.warn(f"{call_origin()}: {said}", stacklevel=3)

    def get(self, option: ConfigOption[T]) -> T:
        """The value of an option: of the program, of what runs it, or the default."""
        for values in (self.values, surrounding_configuration()):
            if option.key in values:
                text = values[option.key]
                try:
                    return option.parse(text)
                except ValueError as exc:
                    raise InvalidOption(f"option {option.key}: '{text}' is not {exc}") from exc
        return option.default

    def parallelism(self) -> int:
        """Subtasks of operators that set none: as the option says, else what runs the program."""
        default = None if self.is_set(job.PARALLELISM_DEFAULT) else surrounding_parallelism()
        return self.get(job.PARALLELISM_DEFAULT) if default is None else default

    def of_job(self, parallelism: int) -> dict[str, str]:
        """Options of a job, with the parallelism if it is none that whoever runs the job knows."""
        if parallelism == self.get(job.PARALLELISM_DEFAULT):
            return dict(self.values)
        return {**self.values, job.PARALLELISM_DEFAULT.key: str(parallelism)}

    def is_set(self, option: ConfigOption[Any]) -> bool:
        """Whether the program or what runs it sets an option."""
        return option.key in self.values or option.key in surrounding_configuration()

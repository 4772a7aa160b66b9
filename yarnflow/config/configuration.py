"""A set of option values, each with where it came from.

A :class:`Configuration` is immutable and valid: every key is declared (or passed through to
Spark) and every value parses, so that a mistake is reported where it was made and not where
the option is read.  Precedence, weakest first: ``yarnflow-conf.yaml``, environment, ``-D``.

The environment variable of an option is ``YARNFLOW_CONF_`` and the key in capitals with every
other character than letters and digits as ``_``: ``YARNFLOW_CONF_HEARTBEAT_INTERVAL``.

Flink counterparts: ``Configuration``, ``GlobalConfiguration``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from yarnflow.config.conf_file import CONF_FILE_NAME, read_conf_file
from yarnflow.config.not_here import why_not_here
from yarnflow.config.option import AnyOption, ConfigOption
from yarnflow.config.options import (
    FREE_KEYS,
    OPTIONS_BY_KEY,
    PASSED_THROUGH,
    REPORTER_OPTION,
    cluster,
    job,
)
from yarnflow.config.secrets import HIDDEN, is_secret, masked_text
from yarnflow.errors import ConfigError, InvalidOption, UnknownOption

T = TypeVar("T")

ENVIRONMENT_PREFIX: Final = "YARNFLOW_CONF_"
#: names the configuration directory and is no option
CONF_DIR_VARIABLE: Final = "YARNFLOW_CONF_DIR"
#: durations of which the first must be shorter than the second
_ORDERED: Final = (
    (cluster.HEARTBEAT_INTERVAL_MS, cluster.HEARTBEAT_TIMEOUT_MS),
    (job.DRIVER_REPORT_INTERVAL_MS, job.DRIVER_HEARTBEAT_TIMEOUT_MS),
)


class Setting(NamedTuple):
    """A value as the user wrote it."""

    value: str
    #: ``path:line``, the name of a variable, ``-D`` …
    source: str


def environment_variable(option: AnyOption) -> str:
    """The environment variable that sets ``option``."""
    return _variable(option.key)


def _variable(key: str) -> str:
    return ENVIRONMENT_PREFIX + re.sub(r"[^A-Za-z0-9]", "_", key).upper()


class Configuration:
    """Option values; see the module's text.  Compare with ``==``; not changeable."""

    __slots__ = ("_settings", "_notes")

    def __init__(
        self, settings: Mapping[str, Setting] | None = None, notes: Sequence[str] = ()
    ) -> None:
        for key, setting in (settings or {}).items():
            _check(key, setting)
        checked, found = _with_present_keys(settings or {})
        self._settings: Final[dict[str, Setting]] = checked
        self._notes: Final = (*notes, *found)

    # --- making -------------------------------------------------------------

    @classmethod
    def empty(cls) -> Configuration:
        """Nothing but defaults."""
        return cls()

    @classmethod
    def from_dict(cls, values: Mapping[str, str], source: str) -> Configuration:
        """Values of one source, named in error messages.

        Raises
        ------
        UnknownOption, InvalidOption
            See :meth:`load`.
        """
        return cls({key: Setting(value, source) for key, value in values.items()})

    @classmethod
    def load(cls, conf_dir: Path | None, environ: Mapping[str, str], dynamic: Sequence[str]) -> Configuration:
        """File, environment and command line, the last one strongest.

        Parameters
        ----------
        conf_dir : Path or None
            Directory with ``yarnflow-conf.yaml``; None = no file.
        environ : mapping
            Usually ``os.environ``; only ``YARNFLOW_CONF_*`` are looked at.
        dynamic : sequence of str
            ``key=value`` texts of ``-D``.

        Raises
        ------
        UnknownOption
            A key no option declares; the message has the nearest ones and the source.
        InvalidOption
            A value that does not parse; the message has key, value, expected form and source.
            Or an interval of heartbeats that is not shorter than their time-out.
        ConfigError
            The file cannot be read.
        """
        settings: dict[str, Setting] = {}
        if conf_dir is not None:
            for key, value, source in read_conf_file(conf_dir / CONF_FILE_NAME):
                settings[key] = Setting(value, source)
        layers = [_from_environment(environ), _from_command_line(dynamic)]
        loaded = cls(_merged(settings, *layers))
        for shorter, longer in _ORDERED:
            loaded._check_order(shorter, longer)
        return loaded

    def with_values(self, values: Mapping[str, str], source: str = "-D") -> Configuration:
        """This configuration with stronger values over it.

        Raises
        ------
        UnknownOption, InvalidOption
            See :meth:`load`.
        """
        added = {key: Setting(value, source) for key, value in values.items()}
        return Configuration(_merged(self._settings, added), self._notes)

    # --- reading ------------------------------------------------------------

    @property
    def notes(self) -> Sequence[str]:
        """What whoever wrote the values should know, a line each: older keys, and what to write instead."""
        return self._notes

    def get(self, option: ConfigOption[T]) -> T:
        """The value of an option, or its default."""
        setting = self._find(option)
        return option.default if setting is None else option.parse(setting.value)

    def get_raw(self, key: str) -> str | None:
        """The text set for exactly this key; None = not set."""
        setting = self._settings.get(key)
        return None if setting is None else setting.value

    def is_set(self, option: AnyOption) -> bool:
        """Whether somebody set the option."""
        return self._find(option) is not None

    def source_of(self, option: AnyOption) -> str:
        """Where the option was set, for error messages; ``default`` if nowhere."""
        setting = self._find(option)
        return "default" if setting is None else setting.source

    def to_dict(self) -> dict[str, str]:
        """All values that were set, secrets included: for other processes, not for people."""
        return {key: setting.value for key, setting in self._settings.items()}

    def masked(self) -> dict[str, str]:
        """All values that were set, secrets hidden: for logs and people."""
        return {
            key: HIDDEN if is_secret(key) else masked_text(value) for key, value in self.to_dict().items()
        }

    def spark_options(self) -> dict[str, str]:
        """The values for ``SparkConf``."""
        return {key: value for key, value in self.to_dict().items() if key.startswith(PASSED_THROUGH)}

    def with_beginning(self, beginning: str) -> dict[str, str]:
        """The values of all keys that begin so; what follows it → text."""
        return {
            key.removeprefix(beginning): value
            for key, value in self.to_dict().items()
            if key.startswith(beginning)
        }

    def _check_order(self, shorter: ConfigOption[int], longer: ConfigOption[int]) -> None:
        if self.get(shorter) >= self.get(longer):
            raise InvalidOption(
                f"{self._told(shorter)} must be shorter than {self._told(longer)}; change one of them"
            )

    def _told(self, option: AnyOption) -> str:
        setting = self._find(option)
        return f"{option.key} ({setting.value if setting else option.default_text}, {self.source_of(option)})"

    def _find(self, option: AnyOption) -> Setting | None:
        return self._settings.get(option.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configuration) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(frozenset(self.to_dict().items()))

    def __repr__(self) -> str:
        return f"Configuration({self.masked()!r})"


def _merged(*layers: Mapping[str, Setting]) -> dict[str, Setting]:
    """Later layers win, also when they use another key of the same option."""
    merged: dict[str, Setting] = {}
    for layer in layers:
        for key in layer:
            option = OPTIONS_BY_KEY.get(key)
            for other in (option.key, *option.deprecated_keys) if option else ():
                if other not in layer:
                    merged.pop(other, None)
        merged.update(layer)
    return merged


def _with_present_keys(
    settings: Mapping[str, Setting],
) -> tuple[dict[str, Setting], list[str]]:
    """The values under the keys that options have now, and a line for each that had an older one."""
    present = dict(settings)
    notes = []
    for key, setting in settings.items():
        option = OPTIONS_BY_KEY.get(key)
        if option is None or key == option.key:
            continue
        del present[key]
        kept = present.get(option.key)
        if kept is None:
            present[option.key] = setting
            notes.append(f"{key} ({setting.source}) is an older key of {option.key}; write that instead")
        else:
            notes.append(
                f"{key} ({setting.source}) is not used: it is an older key of {option.key}, which is set, "
                f"too ({kept.source})"
            )
    return present, notes


def _check(key: str, setting: Setting) -> None:
    option = OPTIONS_BY_KEY.get(key)
    if option is None:
        if REPORTER_OPTION.fullmatch(key) or any(
            key.startswith(beginning) and key != beginning for beginning in FREE_KEYS
        ):
            return
        if why := why_not_here(key):
            raise UnknownOption(f"{key} ({setting.source}) of Flink means nothing here: {why}; leave it out")
        near = difflib.get_close_matches(key, OPTIONS_BY_KEY, n=2, cutoff=0.6)
        hint = f"did you mean {' or '.join(near)}?" if near else "conf/OPTIONS.md lists all options"
        raise UnknownOption(f"unknown option {key} ({setting.source}); {hint}")
    try:
        option.parse(setting.value)
    except ValueError as error:
        shown = HIDDEN if is_secret(key) else repr(setting.value)
        raise InvalidOption(f"{key} is {shown} ({setting.source}); expected {error}") from error


def _from_environment(environ: Mapping[str, str]) -> dict[str, Setting]:
    by_variable = {_variable(key): key for key in OPTIONS_BY_KEY}
    settings: dict[str, Setting] = {}
    for name in sorted(environ):
        if not name.startswith(ENVIRONMENT_PREFIX) or name == CONF_DIR_VARIABLE:
            continue
        key = by_variable.get(name)
        if key is None:
            near = difflib.get_close_matches(name, by_variable, n=1, cutoff=0.6)
            hint = f"did you mean {near[0]}?" if near else "conf/OPTIONS.md lists all options"
            raise UnknownOption(f"unknown option in environment variable {name}; {hint}")
        settings[key] = Setting(environ[name], f"environment variable {name}")
    return settings


def _from_command_line(dynamic: Sequence[str]) -> dict[str, Setting]:
    settings: dict[str, Setting] = {}
    for item in dynamic:
        key, equals, value = item.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"-D{item}: expected -Dkey=value")
        settings[key.strip()] = Setting(value, "-D")
    return settings

"""Which reporters there are: ``metrics.reporters`` and ``metrics.reporter.<name>.*``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from typing import Final, TypeVar

from yarnflow.config import parsers
from yarnflow.config.configuration import Configuration
from yarnflow.config.options import REPORTER_OPTION
from yarnflow.config.options import metrics as metric_options
from yarnflow.errors import InvalidOption

T = TypeVar("T")

DEFAULT_PORT: Final = "9249"
_DEFAULT_INTERVAL: Final = "60 s"
_DEFAULT_ENDPOINT: Final = "http://localhost:4318/v1/metrics"


class ReporterKind(Enum):
    """What a reporter is made by; the values are names of ``factory.class``."""

    PROMETHEUS = "prometheus"
    OPEN_TELEMETRY = "otel"


_FACTORIES: Final = {
    "org.apache.flink.metrics.prometheus.PrometheusReporterFactory": ReporterKind.PROMETHEUS,
    "org.apache.flink.metrics.otel.OpenTelemetryMetricReporterFactory": ReporterKind.OPEN_TELEMETRY,
    **{kind.value: kind for kind in ReporterKind},
}


@dataclass(frozen=True, slots=True)
class ReporterSettings:
    """One reporter."""

    name: str
    kind: ReporterKind
    #: address and ports to listen at; the first free one is taken
    host: str = ""
    ports: str = DEFAULT_PORT
    #: where to send to, and how often
    endpoint: str = _DEFAULT_ENDPOINT
    interval_ms: int = 60_000
    service_name: str = "yarnflow"
    service_version: str = ""
    includes: tuple[str, ...] = ("*",)
    excludes: tuple[str, ...] = ()
    hidden_variables: frozenset[str] = frozenset()
    further_variables: Mapping[str, str] = field(default_factory=dict)

    def wants(self, name: str) -> bool:
        """Whether a metric is reported."""
        wanted = any(fnmatchcase(name, pattern) for pattern in self.includes)
        return wanted and not any(fnmatchcase(name, pattern) for pattern in self.excludes)

    def variables(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Labels of a value."""
        shown = {key: value for key, value in variables.items() if key not in self.hidden_variables}
        return {**shown, **self.further_variables}


def reporter_settings(configuration: Configuration) -> tuple[ReporterSettings, ...]:
    """All reporters that are to be started.

    Raises
    ------
    InvalidOption
        A reporter is not configured, is of no known kind, or one of its options is wrong.
    """
    found: dict[str, dict[str, str]] = {}
    for key, value in configuration.to_dict().items():
        option = REPORTER_OPTION.fullmatch(key)
        if option is not None:
            found.setdefault(option["name"], {})[option["option"]] = value
    named = _list(configuration.get(metric_options.REPORTERS), ",")
    for name in named:
        if name not in found:
            raise InvalidOption(
                f"{metric_options.REPORTERS.key} names '{name}', and there is no "
                f"metrics.reporter.{name}.factory.class; set it or leave the name out"
            )
    return tuple(_settings(name, found[name]) for name in named or tuple(found))


def _settings(name: str, options: Mapping[str, str]) -> ReporterSettings:
    factory = options.get("factory.class", "")
    kind = _FACTORIES.get(factory)
    if kind is None:
        raise InvalidOption(
            f"metrics.reporter.{name}.factory.class is {factory!r}; expected one of {', '.join(_FACTORIES)}"
        )
    return ReporterSettings(
        name,
        kind,
        host=options.get("host", ""),
        ports=_parsed(name, "port", options.get("port", DEFAULT_PORT), parsers.port_range),
        endpoint=_parsed(
            name, "exporter.endpoint", options.get("exporter.endpoint", _DEFAULT_ENDPOINT), _url
        ),
        interval_ms=_parsed(name, "interval", options.get("interval", _DEFAULT_INTERVAL), _interval_ms),
        service_name=options.get("service.name", "yarnflow"),
        service_version=options.get("service.version", ""),
        includes=tuple(_list(options.get("filter.includes", "*"), ";")),
        excludes=tuple(_list(options.get("filter.excludes", ""), ";")),
        hidden_variables=frozenset(
            # Flink's have brackets in some versions
            re.sub(r"[<>]", "", one)
            for one in _list(options.get("scope.variables.excludes", ""), ";")
        ),
        further_variables=_parsed(
            name, "scope.variables.additional", options.get("scope.variables.additional", ""), _pairs
        ),
    )


def _parsed(name: str, option: str, text: str, parse: Callable[[str], T]) -> T:
    try:
        return parse(text)
    except ValueError as error:
        raise InvalidOption(f"metrics.reporter.{name}.{option} is {text!r}; expected {error}") from error


def _list(text: str, separator: str) -> list[str]:
    return [one.strip() for one in text.split(separator) if one.strip()]


def _interval_ms(text: str) -> int:
    return parsers.duration_at_least("1 s")(text)


def _url(text: str) -> str:
    if not re.fullmatch(r"https?://[^\s/]+(/\S*)?", text):
        raise ValueError("a URL such as http://collector:4318/v1/metrics")
    return text


def _pairs(text: str) -> dict[str, str]:
    pairs = [one.partition(":") for one in _list(text, ",")]
    if not all(key.strip() and colon for key, colon, _ in pairs):
        raise ValueError("key1:value1,key2:value2")
    return {key.strip(): value.strip() for key, _, value in pairs}

"""The logging configuration of all processes: its default, and ``log.yaml``, which replaces it.

Both are dictionaries for :func:`logging.config.dictConfig` in which ``${log.file}`` stands for the
process's own file.  A file is checked here as far as that is possible without opening handlers,
so that a mistake is told with its line to the one who starts the cluster, and not by a process
that ends at once.  ``conf/log.yaml`` is written from the default by ``scripts/gen-docs``.

Flink counterpart: ``log4j.properties``.
"""

from __future__ import annotations

import difflib
import logging
import logging.config
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from yarnflow.errors import ConfigError

LOG_FILE_NAME: Final = "log.yaml"
#: stands for the process's own file
LOG_FILE_VARIABLE: Final = "${log.file}"

DEFAULT_LOGGING: Final[dict[str, Any]] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"flink": {"()": "yarnflow.process.logs.FlinkFormatter"}},
    "handlers": {
        "file": {
            "class": "logging.handlers.RotatingFileHandler",
            "filename": LOG_FILE_VARIABLE,
            "maxBytes": 100 * 1024 * 1024,
            "backupCount": 10,
            "encoding": "utf-8",
            "delay": True,
            "formatter": "flink",
        }
    },
    "root": {"level": "INFO", "handlers": ["file"]},
    "loggers": {
        "py4j": {"level": "WARNING"},
        "thrift": {"level": "WARNING"},
    },
}

#: section → what one of its entries is called
_SECTIONS: Final = {
    "formatters": "formatter",
    "filters": "filter",
    "handlers": "handler",
    "loggers": "logger",
}
_KEYS: Final = ("version", "disable_existing_loggers", *_SECTIONS, "root")


def read_log_file(path: Path) -> dict[str, Any]:
    """The content of ``log.yaml``, for :func:`logging.config.dictConfig`.

    Raises
    ------
    ConfigError
        The file cannot be read, is not YAML, or is not a logging configuration; the message has
        file and line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}; correct or remove it") from error
    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        content = None if root is None else loader.construct_document(root)
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigError(f"{path}{line} is not YAML: {error.problem}; correct that line") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not YAML: {' '.join(str(error).split())}; correct the file") from error
    if not isinstance(content, dict) or not isinstance(root, yaml.MappingNode):
        line = "" if root is None else f":{root.start_mark.line + 1}"
        raise ConfigError(f"{path}{line}: expected lines of the form 'key: value'; correct or remove it")
    for place, problem in _problems(content):
        raise ConfigError(f"{path}:{_line_of(root, place)}: {problem}")
    return content


def _problems(content: dict[Any, Any]) -> Iterator[tuple[tuple[Any, ...], str]]:
    """What is wrong, each with the keys that lead there."""
    for key in content:
        if key not in _KEYS:
            near = difflib.get_close_matches(str(key), _KEYS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(_KEYS)}"
            yield (key,), f"unknown key {key}; {hint}"
    if content.get("version") != 1:
        yield ("version",), "expected version: 1"
    for section in (*_SECTIONS, "root"):
        if not isinstance(content.get(section, {}), dict):
            yield (section,), f"{section} must hold lines of the form 'key: value'"
            return
    for section, kind in _SECTIONS.items():
        for name, entry in content.get(section, {}).items():
            yield from _entry_problems(content, (section, name), f"{kind} {name}", entry)
    yield from _entry_problems(content, ("root",), "root", content.get("root", {}))


def _entry_problems(
    content: dict[Any, Any], place: tuple[Any, ...], name: str, entry: Any
) -> Iterator[tuple[tuple[Any, ...], str]]:
    if not isinstance(entry, dict):
        yield place, f"{name} must hold lines of the form 'key: value'"
        return
    if place[0] == "handlers" and not {"class", "()"} & set(entry):
        yield place, f"{name} has no class"
    for key in ("class", "()"):
        if key in entry and (reason := _unresolvable(entry[key])):
            yield (*place, key), f"{name}: {reason}"
    if "level" in entry and not _is_level(entry["level"]):
        levels = "DEBUG, INFO, WARNING or ERROR"
        yield (*place, "level"), f"{name}: {entry['level']!r} is no level; expected {levels}"
    if "formatter" in entry and entry["formatter"] not in content.get("formatters", {}):
        yield (*place, "formatter"), f"{name}: there is no formatter {entry['formatter']}"
    for section in ("handlers", "filters"):
        names = entry.get(section, [])
        if not isinstance(names, list):
            yield (*place, section), f"{name}: {section} must be a list, such as [file]"
            continue
        for wanted in names:
            if wanted not in content.get(section, {}):
                yield (*place, section), f"{name}: there is no {_SECTIONS[section]} {wanted}"


def _unresolvable(name: Any) -> str:
    """Why no class of this name can be imported; empty if it can."""
    try:
        logging.config.BaseConfigurator({}).resolve(str(name))
    except Exception as error:  # importing somebody's module can fail in any way
        return f"cannot import {name}: {error.__cause__ or error}"
    return ""


def _is_level(level: Any) -> bool:
    return isinstance(level, int) or level in logging.getLevelNamesMapping()


def _line_of(root: yaml.MappingNode, place: tuple[Any, ...]) -> int:
    """Line of the deepest key of ``place`` there is."""
    line, node = root.start_mark.line, root
    for wanted in place:
        for key_node, value_node in node.value:
            if key_node.value == str(wanted):
                line, node = key_node.start_mark.line, value_node
                break
        if not isinstance(node, yaml.MappingNode):
            break
    return int(line) + 1

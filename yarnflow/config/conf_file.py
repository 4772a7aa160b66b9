"""Reads ``yarnflow-conf.yaml``: key → text with the line it stands on.

Values are kept as the user wrote them (``10 s``, ``true``, ``007``); the options decide what
they mean.  Keys may be flat (``heartbeat.interval: 10 s``) or nested mappings.

Flink counterpart: ``GlobalConfiguration`` with its standard YAML parser.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import yaml

from yarnflow.errors import ConfigError, InvalidOption

CONF_FILE_NAME: Final = "yarnflow-conf.yaml"


class Entry(NamedTuple):
    """One key of the file."""

    key: str
    value: str
    #: ``path:line``
    source: str


def read_conf_file(path: Path) -> list[Entry]:
    """All keys of a file, in order.

    Raises
    ------
    ConfigError
        The file cannot be read, or is not YAML.
    InvalidOption
        A key occurs twice, or a value is not a text, number or list of those.
    """
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}; check the configuration directory") from error
    try:
        root = yaml.compose(content, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigError(f"{path}{line} is not YAML: {error.problem}; correct that line") from error
    except yaml.YAMLError as error:
        one_line = " ".join(str(error).split())
        raise ConfigError(f"{path} is not YAML: {one_line}; correct the file") from error
    if root is None:
        return []
    if not isinstance(root, yaml.MappingNode):
        raise ConfigError(f"{path}:{root.start_mark.line + 1}: expected lines of the form 'key: value'")
    found: dict[str, Entry] = {}
    for entry in _flatten(root, "", path):
        if entry.key in found:
            raise InvalidOption(
                f"{entry.key} is set twice, at {found[entry.key].source} and {entry.source}; keep one"
            )
        found[entry.key] = entry
    return list(found.values())


def _flatten(node: yaml.MappingNode, prefix: str, path: Path) -> Iterator[Entry]:
    for key_node, value_node in node.value:
        source = f"{path}:{key_node.start_mark.line + 1}"
        if not isinstance(key_node, yaml.ScalarNode):
            raise InvalidOption(f"{source}: a key must be a plain text")
        key = f"{prefix}{key_node.value}"
        if isinstance(value_node, yaml.MappingNode):
            yield from _flatten(value_node, f"{key}.", path)
        elif isinstance(value_node, yaml.ScalarNode):
            # 'key:' without a value, and 'key: ~', are the empty text
            empty = value_node.tag == "tag:yaml.org,2002:null"
            yield Entry(key, "" if empty else value_node.value, source)
        elif all(isinstance(item, yaml.ScalarNode) for item in value_node.value):
            yield Entry(key, ";".join(item.value for item in value_node.value), source)
        else:
            raise InvalidOption(f"{key} at {source}: a list may hold plain values only")


def read_yaml(text: str) -> object:
    """Any YAML of ours, such as what YARN would be asked for."""
    return yaml.safe_load(text)


def read_list(text: str) -> list[object] | None:
    """A YAML list such as ``[a, b]``; None: the text is no list, or not YAML."""
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError:
        return None
    return found if isinstance(found, list) else None

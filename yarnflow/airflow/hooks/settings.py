"""What an Airflow connection of the type ``yarnflow`` says; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from yarnflow.airflow.hooks.errors import ConnectionUnusable

_TEXTS: Final = ("target", "conf_dir", "hadoop_conf_dir", "command", "history_server")
_MAPPINGS: Final = ("options", "env")
_HOST_PORT: Final = re.compile(r"[^\s:/,]+:\d{1,5}")


@dataclass(frozen=True, slots=True)
class Settings:
    """One connection."""

    conn_id: str
    #: base URLs of the REST interface, of several masters those that are known; empty = the command finds it
    addresses: tuple[str, ...] = ()
    #: REST token; empty = the command asks for one, or none is needed
    token: str = field(default="", repr=False)
    #: ``execution.target`` of submits; empty = that of the configuration
    target: str = ""
    conf_dir: str = ""
    hadoop_conf_dir: str = ""
    #: path of the command ``yarnflow``; empty = the one of this Python
    command: str = ""
    #: base URL; empty = there is none
    history_server: str = ""
    #: ``-D`` of every command
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: variables of every command over those of the worker
    env: Mapping[str, str] = field(default_factory=dict, repr=False)


def read_settings(
    conn_id: str, host: str | None, port: int | None, password: str | None, extra: Mapping[str, Any]
) -> Settings:
    """The settings of a connection.

    Parameters
    ----------
    host : str, optional
        ``host``, ``host:port``, ``http://host:port/path``, or several with commas between them.
    port : int, optional
        Of hosts without one.
    extra : mapping
        As :func:`yarnflow.airflow.get_provider_info.get_provider_info` declares it.

    Raises
    ------
    ConnectionUnusable
        An unknown key, or a value of another form.
    """
    unknown = sorted(set(extra) - {*_TEXTS, *_MAPPINGS})
    if unknown:
        known = ", ".join((*_TEXTS, *_MAPPINGS))
        raise ConnectionUnusable(
            f"connection {conn_id}: unknown key {unknown[0]!r} in its extra; known: {known}"
        )
    texts = {name: _text(conn_id, name, extra.get(name)) for name in _TEXTS}
    return Settings(
        conn_id=conn_id,
        addresses=_addresses(conn_id, host or "", port),
        token=password or "",
        options=_mapping(conn_id, "options", extra.get("options")),
        env=_mapping(conn_id, "env", extra.get("env")),
        **texts,
    )


def _text(conn_id: str, name: str, value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ConnectionUnusable(f"connection {conn_id}: {name} in its extra is not a text")
    return value.strip().rstrip("/") if name == "history_server" else value.strip()


def _mapping(conn_id: str, name: str, value: Any) -> dict[str, str]:
    if value is None or value == "":
        return {}
    if not isinstance(value, Mapping):
        raise ConnectionUnusable(f"connection {conn_id}: {name} in its extra is not a JSON object")
    return {str(key): option_text(item) for key, item in value.items()}


def option_text(value: Any) -> str:
    """A value of an option as ``-D`` takes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _addresses(conn_id: str, host: str, port: int | None) -> tuple[str, ...]:
    found = []
    for name in (part.strip().rstrip("/") for part in host.split(",")):
        if not name:
            continue
        if "://" in name:
            found.append(name)
            continue
        if _HOST_PORT.fullmatch(name) is None:
            if port is None or ":" in name or "/" in name:
                raise ConnectionUnusable(
                    f"connection {conn_id}: {name!r} is not host:port of a REST interface"
                )
            name = f"{name}:{port}"
        found.append(f"http://{name}")
    return tuple(found)

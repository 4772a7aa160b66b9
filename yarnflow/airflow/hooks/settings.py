"""What an Airflow connection of the type ``yarnflow`` says; pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from yarnflow.airflow.hooks.errors import ConnectionUnusable
from yarnflow.config.secrets import is_secret

_TEXTS: Final = ("target", "conf_dir", "hadoop_conf_dir", "command", "history_server")
_MAPPINGS: Final = ("options", "env")
#: a name, or a number of IPv6
_HOST: Final = re.compile(r"[\w-]+(\.[\w-]+)*\.?|[0-9a-f:.]*:[0-9a-f:.%]*")
#: scheme, host, port, path
_ADDRESS: Final = re.compile(r"(https?://)?([^\s:/,]+)(:\d{1,5})?(/[^\s,]*)?")


@dataclass(frozen=True, slots=True)
class Settings:
    """One connection."""

    conn_id: str
    #: base URLs of the REST interface, of several masters those that are known; empty = the command finds it
    addresses: tuple[str, ...] = ()
    #: REST token; empty = none is needed, or, without addresses, the command asks for one
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
    texts["history_server"] = _history_server(conn_id, texts["history_server"])
    return Settings(
        conn_id=conn_id,
        addresses=_addresses(conn_id, host or "", port),
        token=password or "",
        options=_mapping(conn_id, "options", extra.get("options")),
        env=_mapping(conn_id, "env", extra.get("env")),
        **texts,
    )


def connection_settings(conn_id: str, connection: Any) -> tuple[Settings, list[str]]:
    """The settings of one of Airflow's connections, and what is not to be seen in logs.

    Raises
    ------
    ConnectionUnusable
        It is of another type, or what it says cannot be used.
    """
    if connection.conn_type not in ("yarnflow", "generic", None, ""):
        raise ConnectionUnusable(
            f"connection {conn_id} is of the type {connection.conn_type}, and not of the type yarnflow"
        )
    try:
        extra = json.loads(connection.extra or "{}")
    except ValueError:
        extra = None
    if not isinstance(extra, dict):
        raise ConnectionUnusable(f"connection {conn_id}: its extra is not a JSON object")
    settings = read_settings(conn_id, connection.host, connection.port, connection.password, extra)
    secrets = [value for key, value in {**settings.options, **settings.env}.items() if is_secret(key)]
    return settings, [secret for secret in (settings.token, *secrets) if secret]


def _text(conn_id: str, name: str, value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ConnectionUnusable(f"connection {conn_id}: {name} in its extra is not a text")
    return value.strip()


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


def _history_server(conn_id: str, given: str) -> str:
    if not given:
        return ""
    address = given.rstrip("/") if "://" in given else f"http://{given.rstrip('/')}"
    try:
        parts = urlsplit(address)
        # a name alone has no port of its own scheme
        port = parts.port or ("://" in given)
    except ValueError:
        port = None
    if not port or parts.scheme not in ("http", "https") or _HOST.fullmatch(parts.hostname or "") is None:
        raise ConnectionUnusable(
            f"connection {conn_id}: history_server in its extra: {given!r} is not one http://host:port"
        )
    return address


def _addresses(conn_id: str, host: str, port: int | None) -> tuple[str, ...]:
    found = []
    for name in (part.strip().rstrip("/") for part in host.split(",")):
        if not name:
            continue
        parts = _ADDRESS.fullmatch(name)
        scheme, host_name, own_port, path = parts.groups("") if parts is not None else ("",) * 4
        if not own_port and port is not None:
            own_port = f":{port}"
        # a URL has a port of its own scheme, and a path; a name alone has neither
        if not host_name or not (scheme or (own_port and not path)):
            raise ConnectionUnusable(
                f"connection {conn_id}: {name!r} is not host:port of a REST interface, nor http://host:port"
            )
        found.append(f"{scheme or 'http://'}{host_name}{own_port}{path}")
    return tuple(found)

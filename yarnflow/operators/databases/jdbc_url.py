"""JDBC's address of a database, for Python's drivers.

Decides what of it a Python driver is told: settings that only tune Java's driver are left out, and one whose
meaning is not known here is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from yarnflow.errors import ConfigError

_URL: Final = re.compile(r"jdbc:(?P<kind>[a-z0-9]+):(?P<rest>.*)", re.DOTALL)
_HOST: Final = re.compile(r"(?P<host>\[[^\]]+\]|[^:,\[\]]*)(?::(?P<port>\d+))?")
_CONNECT_S: Final = 30
#: a server that says nothing for so long is given up
_SILENT_S: Final = 300
#: more it does not take
_PYMYSQL_CONNECT_MAX_S: Final = 31_536_000


class DatabaseKind(Enum):
    """Databases a sink can write to; the value is what people call them."""

    POSTGRESQL = "PostgreSQL"
    MYSQL = "MySQL or MariaDB"
    SQLITE = "SQLite"


_KINDS: Final = {
    "postgresql": DatabaseKind.POSTGRESQL,
    "mysql": DatabaseKind.MYSQL,
    "mariadb": DatabaseKind.MYSQL,
    "sqlite": DatabaseKind.SQLITE,
}


@dataclass(frozen=True, slots=True)
class DatabaseAddress:
    """Where a database is and how to log in."""

    kind: DatabaseKind
    #: what the driver's ``connect`` is called with
    arguments: Mapping[str, Any] = field(repr=False)
    #: for messages: without user and password
    shown: str = ""
    #: PostgreSQL's settings that every transaction begins with
    in_transactions: Mapping[str, str] = field(default_factory=dict)


def database_address(url: str, user: str = "", password: str = "") -> DatabaseAddress:
    """Read a URL such as ``jdbc:postgresql://db.example.com:5432/shop?sslmode=require``.

    Parameters
    ----------
    url : str
    user, password : str
        In place of those in the URL.

    Raises
    ------
    ConfigError
        It is no such URL, of no known database, or has a setting that is not known.
    """
    found = _URL.fullmatch(url.strip())
    if found is None:
        raise ConfigError(f"{_shown(url)} is no JDBC URL; write jdbc:postgresql://host:5432/database")
    kind = _KINDS.get(found["kind"])
    if kind is None:
        known = ", ".join(f"jdbc:{name}:" for name in _KINDS)
        raise ConfigError(
            f"a sink cannot write to jdbc:{found['kind']}: databases; known are {known}. For others use "
            "foreach_batch and commit_once"
        )
    rest, _, query = found["rest"].partition("?")
    if kind is DatabaseKind.SQLITE:
        return DatabaseAddress(kind, {"database": rest}, f"jdbc:sqlite:{rest}")
    if not rest.startswith("//"):
        # PostgreSQL's short forms mean the server of this machine, which is another one on every executor
        raise ConfigError(f"{_shown(url)} names no server; write jdbc:{found['kind']}://host:port/database")
    hosts, _, database = rest[2:].partition("/")
    settings = dict(parse_qsl(query, keep_blank_values=True))
    login, _, hosts = hosts.rpartition("@")
    shown = f"jdbc:{found['kind']}://{hosts}/{database}"
    if "@" in database or (login and kind is not DatabaseKind.MYSQL):
        # without what stands there: it may be a password
        raise ConfigError(
            f"{_shown(url)}: name user and password as settings, not before the host; in an address, / @ ? "
            "and & of a password are %2F %40 %3F and %26"
        )
    if login:
        # as Connector/J has it; what is said by name holds
        name, _, secret = login.partition(":")
        settings = {"user": unquote(name), "password": unquote(secret), **settings}
    if user:
        settings["user"] = user
    if password:
        settings["password"] = password
    where = (_hosts(hosts, shown), unquote(database), settings, shown)
    if kind is DatabaseKind.POSTGRESQL:
        return DatabaseAddress(kind, _postgresql(*where), shown, _pg_in_transactions(settings))
    return DatabaseAddress(kind, _mysql(*where), shown)


def _shown(url: str) -> str:
    """Without settings and without what stands before the host: there are passwords in both."""
    scheme, slashes, rest = url.partition("?")[0].partition("//")
    return f"{scheme}//{rest.rpartition('@')[2]}" if slashes else scheme.rpartition("@")[2]


def _hosts(text: str, shown: str) -> list[tuple[str, str]]:
    hosts = []
    for part in text.split(","):
        found = _HOST.fullmatch(part)
        if found is None:
            raise ConfigError(f"{shown}: '{part}' is not host or host:port")
        hosts.append(((found["host"] or "localhost").strip("[]"), found["port"] or ""))
    return hosts


# --- PostgreSQL ---------------------------------------------------------------------------

#: of pgjdbc → of libpq
_PG_SAME: Final = {
    **dict.fromkeys(("user", "password", "sslmode", "sslcert", "sslkey", "sslrootcert", "sslpassword"), ""),
    "ApplicationName": "application_name",
    "channelBinding": "channel_binding",
    "gssEncMode": "gssencmode",
    "options": "options",
}
_PG_SERVERS: Final = {
    "any": "any",
    "primary": "primary",
    "master": "primary",
    "secondary": "standby",
    "slave": "standby",
    "preferSecondary": "prefer-standby",
    "preferSlave": "prefer-standby",
}
_PG_JAVA_ONLY: Final = {
    "reWriteBatchedInserts", "preparedStatementCacheQueries", "stringtype",
    "binaryTransfer",
    "preparedStatementCacheSizeMiB", "defaultRowFetchSize", "autosave", "cleanupSavepoints", "loggerLevel",
    "logUnclosedConnections", "loginTimeout", "assumeMinServerVersion", "tcpKeepAlive",
    "preferQueryMode", "sendBufferSize", "receiveBufferSize", "adaptiveFetch", "databaseMetadataCacheFields",
}  # fmt: skip


def _postgresql(
    hosts: list[tuple[str, str]], database: str, settings: Mapping[str, str], shown: str
) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "connect_timeout": str(_CONNECT_S),
        # a server that is gone without a word
        "keepalives_idle": "30",
        "keepalives_interval": "10",
        "keepalives_count": "3",
        # or does not even acknowledge
        "tcp_user_timeout": str(_SILENT_S * 1000),
        "application_name": "yarnflow",
        "host": ",".join(host for host, _ in hosts),
        "port": ",".join(port or "5432" for _, port in hosts),
        "dbname": database,
    }
    for name, value in settings.items():
        if name in _PG_SAME:
            arguments[_PG_SAME[name] or name] = value
        elif name == "ssl":
            if value in ("", "true"):
                arguments.setdefault("sslmode", "verify-full")
        elif name == "prepareThreshold" and value.isdigit():
            # 0 = never, for poolers that give each transaction another connection
            arguments["prepare_threshold"] = int(value) or None
        elif name == "connectTimeout":
            arguments["connect_timeout"] = str(_whole(shown, name, value, "seconds"))
        elif name == "socketTimeout":
            # the client cannot break off what the server computes; that the server does
            arguments["tcp_user_timeout"] = str(_whole(shown, name, value, "seconds") * 1000)
        elif name == "targetServerType" and value in _PG_SERVERS:
            arguments["target_session_attrs"] = _PG_SERVERS[value]
        elif name not in _PG_JAVA_ONLY and name != "currentSchema":
            raise _unknown(shown, f"{name}={value}" if name == "targetServerType" else name)
    return arguments


def _pg_in_transactions(settings: Mapping[str, str]) -> dict[str, str]:
    found = {}
    if schema := settings.get("currentSchema"):
        found["search_path"] = schema
    if seconds := settings.get("socketTimeout"):
        found["statement_timeout"] = f"{seconds}s"
    return found


# --- MySQL and MariaDB --------------------------------------------------------------------

_MYSQL_JAVA_ONLY: Final = {
    "rewriteBatchedStatements", "serverTimezone", "useUnicode", "characterEncoding", "autoReconnect",
    "allowPublicKeyRetrieval", "zeroDateTimeBehavior", "cachePrepStmts", "useServerPrepStmts",
    "prepStmtCacheSize", "prepStmtCacheSqlLimit", "useLegacyDatetimeCode", "tinyInt1isBit", "maxReconnects",
    "connectionTimeZone", "forceConnectionTimeZoneToSession", "useInformationSchema", "useCursorFetch",
    "defaultFetchSize", "failOverReadOnly", "nullCatalogMeansCurrent", "noAccessToProcedureList",
    "useBulkStmts", "useLocalSessionState", "elideSetAutoCommits", "maintainTimeStats", "tcpKeepAlive",
    "useJDBCCompliantTimezoneShift", "verifyServerCertificate", "cacheResultSetMetadata",
    "cacheServerConfiguration",
}  # fmt: skip


def _mysql(
    hosts: list[tuple[str, str]], database: str, settings: Mapping[str, str], shown: str
) -> dict[str, Any]:
    if len(hosts) > 1:
        raise ConfigError(f"{shown}: name one server; a proxy or an address that moves finds the others")
    ((host, port),) = hosts
    arguments: dict[str, Any] = {
        "host": host,
        "port": int(port or 3306),
        "database": database,
        "connect_timeout": _CONNECT_S,
        "read_timeout": _SILENT_S,
        "write_timeout": _SILENT_S,
        "charset": "utf8mb4",
    }
    for name, value in settings.items():
        if name in ("user", "password"):
            arguments[name] = value
        elif name in ("connectTimeout", "socketTimeout"):
            ms = _whole(shown, name, value, "milliseconds")
            # 0 = without a limit
            seconds = max(ms // 1000, 1) if ms else None
            if name == "connectTimeout":
                arguments["connect_timeout"] = seconds or _PYMYSQL_CONNECT_MAX_S
            else:
                arguments["read_timeout"] = arguments["write_timeout"] = seconds
        elif name in _MYSQL_TLS:
            arguments.update(_MYSQL_TLS[name](value))
        elif name not in _MYSQL_JAVA_ONLY:
            raise _unknown(shown, name)
    return arguments


def _tls_by_mode(mode: str) -> dict[str, Any]:
    match mode.upper().replace("-", "_"):
        case "DISABLED" | "DISABLE":
            return {"ssl_disabled": True}
        case "VERIFY_CA":
            return {"ssl_verify_cert": True}
        case "VERIFY_IDENTITY" | "VERIFY_FULL":
            return {"ssl_verify_cert": True, "ssl_verify_identity": True}
        case "PREFERRED":
            return {}
    return {"ssl": {"check_hostname": False}}


def _tls_by_flag(flag: str) -> dict[str, Any]:
    return _tls_by_mode("REQUIRED" if flag.lower() in ("", "true") else "DISABLED")


_MYSQL_TLS: Final[dict[str, Callable[[str], dict[str, Any]]]] = {
    "sslMode": _tls_by_mode,
    "useSSL": _tls_by_flag,
    "useSsl": _tls_by_flag,
    "requireSSL": lambda flag: _tls_by_flag(flag) if flag.lower() != "false" else {},
    "serverSslCert": lambda path: {"ssl_ca": path},
}


def _whole(shown: str, name: str, value: str, units: str) -> int:
    if not value.isdecimal():
        raise ConfigError(f"{shown}: {name}={value} is not a number of {units}")
    return int(value)


def _unknown(shown: str, name: str) -> ConfigError:
    # without its value: it may be a password
    return ConfigError(f"{shown}: the setting {name} is not known here; leave it out")

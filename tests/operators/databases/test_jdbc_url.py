"""JDBC's addresses as arguments of Python's drivers."""

from __future__ import annotations

from typing import Any

import pytest

from yarnflow.errors import ConfigError
from yarnflow.graph.connectors.sinks import JdbcSink
from yarnflow.operators.databases.jdbc_url import DatabaseKind, database_address


def arguments(url: str, *login: str) -> dict[str, Any]:
    return dict(database_address(url, *login).arguments)


@pytest.mark.parametrize(
    "url, expected",
    [
        ("jdbc:postgresql://db/shop", {"host": "db", "port": "5432", "dbname": "shop"}),
        ("jdbc:postgresql://a:1,b:2/shop", {"host": "a,b", "port": "1,2"}),
        ("jdbc:postgresql://[::1]:7/my%20shop", {"host": "::1", "port": "7", "dbname": "my shop"}),
        ("jdbc:postgresql://db/shop?user=ann&password=p%26w", {"user": "ann", "password": "p&w"}),
        ("jdbc:postgresql://db/s?ssl=true", {"sslmode": "verify-full"}),
        ("jdbc:postgresql://db/s?ssl=true&sslmode=require", {"sslmode": "require"}),
        ("jdbc:postgresql://db/s?prepareThreshold=0", {"prepare_threshold": None}),
        ("jdbc:postgresql://db/s?prepareThreshold=9", {"prepare_threshold": 9}),
        ("jdbc:postgresql://db/s?currentSchema=x&options=-c%20a=b", {"options": "-c a=b"}),
        ("jdbc:postgresql://db/s?currentSchema=x", {"options": "not there"}),
        ("jdbc:postgresql://db/s?targetServerType=primary", {"target_session_attrs": "primary"}),
        ("jdbc:postgresql://db/s?reWriteBatchedInserts=true&connectTimeout=5", {"connect_timeout": "5"}),
        ("jdbc:mysql://db/shop", {"host": "db", "port": 3306, "database": "shop", "charset": "utf8mb4"}),
        ("jdbc:mariadb://db:1/shop?useSSL=false", {"port": 1, "ssl_disabled": True}),
        ("jdbc:mysql://db/s?sslMode=VERIFY_IDENTITY", {"ssl_verify_cert": True, "ssl_verify_identity": True}),
        ("jdbc:mysql://db/s?sslMode=REQUIRED", {"ssl": {"check_hostname": False}}),
        ("jdbc:mysql://db/s?connectTimeout=1500&serverTimezone=UTC", {"connect_timeout": 1}),
        ("jdbc:postgresql://db/s", {"tcp_user_timeout": "300000"}),
        ("jdbc:postgresql://db/s?socketTimeout=9", {"tcp_user_timeout": "9000"}),
        ("jdbc:postgresql://db/s?socketTimeout=0", {"tcp_user_timeout": "0"}),
        ("jdbc:mysql://db/s", {"read_timeout": 300, "write_timeout": 300}),
        ("jdbc:mysql://db/s?socketTimeout=9000", {"read_timeout": 9, "write_timeout": 9}),
        ("jdbc:mysql://db/s?socketTimeout=300", {"read_timeout": 1, "write_timeout": 1}),
        ("jdbc:mysql://db/s?socketTimeout=0", {"read_timeout": None, "write_timeout": None}),
        ("jdbc:mysql://db/s?connectTimeout=0", {"connect_timeout": 31_536_000}),
        ("jdbc:sqlite:/tmp/x.db", {"database": "/tmp/x.db"}),
    ],
)
def test_arguments(url: str, expected: dict[str, Any]) -> None:
    found = arguments(url)
    assert {name: found.get(name, "not there") for name in expected} == expected


def test_what_postgresql_is_told_in_each_transaction() -> None:
    address = database_address("jdbc:postgresql://db/s?currentSchema=x,public")
    assert address.in_transactions == {"search_path": "x,public"}
    timed = database_address("jdbc:postgresql://db/s?socketTimeout=9")
    assert timed.in_transactions == {"statement_timeout": "9s"}
    assert database_address("jdbc:postgresql://db/s?currentSchema=").in_transactions == {}
    assert database_address("jdbc:mysql://db/s").in_transactions == {}


def test_a_login_beside_the_url_wins_and_none_is_shown() -> None:
    address = database_address("jdbc:postgresql://db/shop?user=ann&password=old", "ben", "new")
    assert (address.arguments["user"], address.arguments["password"]) == ("ben", "new")
    assert address.shown == "jdbc:postgresql://db/shop"
    assert "new" not in repr(address) and "old" not in repr(address)


@pytest.mark.parametrize(
    "url, said",
    [
        ("postgresql://db/shop", "is no JDBC URL"),
        ("jdbc:oracle:thin:@db:1521/x", "cannot write to jdbc:oracle: databases"),
        ("jdbc:postgresql:shop", "names no server"),
        ("jdbc:postgresql://db:port/shop", "'db:port' is not host or host:port"),
        ("jdbc:postgresql://db/shop?sslfactory=x", "the setting sslfactory is not known"),
        ("jdbc:postgresql://db/shop?targetServerType=best", "targetServerType=best is not known"),
        ("jdbc:mysql://a,b/shop", "name one server"),
        ("jdbc:mysql://a/shop?connectTimeout=soon", "is not a number of milliseconds"),
        ("jdbc:postgresql://a/shop?connectTimeout=soon", "connectTimeout=soon is not a number of seconds"),
        ("jdbc:postgresql://a/shop?socketTimeout=-1", "socketTimeout=-1 is not a number of seconds"),
        ("jdbc:mysql://a/shop?allowMultiQueries=true", "allowMultiQueries is not known"),
    ],
)
def test_what_is_refused(url: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said.replace("?", r"\?")):
        database_address(url)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://bob:hunter2@db/shop",
        "bob:hunter2@db/shop",
        "jdbc:postgresql://bob:hunter2@db/shop",
        "jdbc:postgresql:bob:hunter2@db/shop",
        "jdbc:mysql://bob:hunter2/x@db:3306/shop",
        "jdbc:mysql://bob:hunter2@db:port/shop",
        "jdbc:mysql://bob:hunter2,x@db:port/shop",
        "jdbc:mysql://db/shop?trustCertificateKeyStorePassword=hunter2",
        "jdbc:postgresql://db/shop?passwordd=hunter2",
    ],
)
def test_passwords_are_not_told(url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        database_address(url)
    assert "hunter2" not in refused.value.message
    assert "hunter2" not in repr(JdbcSink("", url))


def test_users_before_the_host_as_connector_j_has_them() -> None:
    address = database_address("jdbc:mysql://bob:p%40q@db:3307/shop")
    wanted = {"host": "db", "port": 3307, "database": "shop", "user": "bob", "password": "p@q"}
    assert wanted.items() <= address.arguments.items() and address.shown == "jdbc:mysql://db:3307/shop"
    assert database_address("jdbc:mysql://bob:p@db/shop", "ann", "r").arguments["user"] == "ann"


def test_each_kind_is_called_as_people_call_it() -> None:
    assert {kind.value for kind in DatabaseKind} == {"PostgreSQL", "MySQL or MariaDB", "SQLite"}

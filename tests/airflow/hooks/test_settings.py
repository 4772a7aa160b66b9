"""What an Airflow connection says."""

from __future__ import annotations

import re
from typing import Any

import pytest

from yarnflow.airflow.hooks.errors import ConnectionUnusable
from yarnflow.airflow.hooks.settings import read_settings


def test_everything_of_a_connection() -> None:
    settings = read_settings(
        "c",
        "one:8081, two:8081",
        None,
        "s3cret",
        {
            "target": "yarn-session",
            "conf_dir": "/conf",
            "hadoop_conf_dir": "/hadoop",
            "command": "/bin/yarnflow",
            "history_server": "http://history:8082/",
            "options": {"parallelism.default": 2, "a": True},
            "env": {"KRB5CCNAME": "/tmp/cc"},
        },
    )
    assert settings.addresses == ("http://one:8081", "http://two:8081")
    assert (settings.target, settings.token) == ("yarn-session", "s3cret")
    assert settings.history_server == "http://history:8082"
    assert settings.options == {"parallelism.default": "2", "a": "true"}
    assert settings.env == {"KRB5CCNAME": "/tmp/cc"}


def test_an_empty_connection_leaves_all_to_the_configuration_of_the_worker() -> None:
    settings = read_settings("c", None, None, None, {})
    assert (settings.addresses, settings.target, settings.token, settings.options) == ((), "", "", {})


@pytest.mark.parametrize(
    ("host", "port", "address"),
    [
        ("one", 8081, "http://one:8081"),
        ("http://rm:8088/proxy/application_1_2/", None, "http://rm:8088/proxy/application_1_2"),
        ("https://one", None, "https://one"),
        ("https://one", 8081, "https://one:8081"),
        ("https://one:8443/yarnflow", 8081, "https://one:8443/yarnflow"),
    ],
)
def test_addresses(host: str, port: int | None, address: str) -> None:
    assert read_settings("c", host, port, None, {}).addresses == (address,)


@pytest.mark.parametrize(
    ("host", "extra", "said"),
    [
        ("one", {}, "'one' is not host:port"),
        ("one:port", {}, "'one:port' is not host:port"),
        ("one:8081/path", {}, "'one:8081/path' is not host:port"),
        ("ftp://one:21", {}, "'ftp://one:21' is not host:port"),
        ("http://one two", {}, "'http://one two' is not host:port"),
        ("", {"tarrget": "local"}, "unknown key 'tarrget'"),
        ("", {"target": 3}, "target in its extra is not a text"),
        ("", {"options": "a=b"}, "options in its extra is not a JSON object"),
    ],
)
def test_what_cannot_be_used_is_said_in_one_line(host: str, extra: dict[str, Any], said: str) -> None:
    with pytest.raises(ConnectionUnusable, match=said) as raised:
        read_settings("my_conn", host, None, None, extra)
    assert "my_conn" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_secrets_are_not_in_what_is_printed() -> None:
    settings = read_settings("c", "", None, "s3cret", {"env": {"A": "s3cret"}, "options": {"b": "s3cret"}})
    assert "s3cret" not in repr(settings)


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("http://history:8082/", "http://history:8082"),
        ("history:8082", "http://history:8082"),
        ("https://[::1]:8082/yarnflow", "https://[::1]:8082/yarnflow"),
        ("", ""),
    ],
)
def test_a_history_server(given: str, address: str) -> None:
    assert read_settings("c", None, None, None, {"history_server": given}).history_server == address


@pytest.mark.parametrize("given", [
        *("history", "one:8082,two:8082", "http:///", "http://:8082", "http://history:abc", "http://[::1"),
        *("http://one..two:8082", "ftp://history:8082"),
    ])
def test_what_is_no_history_server(given: str) -> None:
    said = f"connection c: history_server in its extra: '{given}' is not one"
    with pytest.raises(ConnectionUnusable, match=re.escape(said)):
        read_settings("c", None, None, None, {"history_server": given})

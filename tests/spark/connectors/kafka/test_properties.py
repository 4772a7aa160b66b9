"""Settings of Java's producer as librdkafka's."""

from __future__ import annotations

import pytest

from yarnflow.errors import UnsupportedGraph
from yarnflow.spark.connectors.kafka.producer import make_client
from yarnflow.spark.connectors.kafka.properties import checked, to_librdkafka


def plain(settings: dict[str, str]) -> object:
    return make_client(settings, in_transactions=False)


def transactional(settings: dict[str, str]) -> object:
    return make_client(settings, in_transactions=True)


def test_settings_are_renamed_and_those_of_java_alone_left_out() -> None:
    assert to_librdkafka(
        {
            "bootstrap.servers": "h:1",
            "acks": "all",
            "max.request.size": "5000",
            "key.serializer": "org.Something",
            "ssl.truststore.location": "/ca.pem",
            "ssl.endpoint.identification.algorithm": "",
        }
    ) == {
        "bootstrap.servers": "h:1",
        "acks": "all",
        "message.max.bytes": "5000",
        "ssl.ca.location": "/ca.pem",
        "ssl.endpoint.identification.algorithm": "none",
        "partitioner": "murmur2_random",
    }


def test_users_of_sasl() -> None:
    plain = 'org.apache.PlainLoginModule required username="u" password="p\\"=;q";'
    found = to_librdkafka({"sasl.jaas.config": plain})
    assert (found["sasl.username"], found["sasl.password"]) == ("u", 'p"=;q')
    found = to_librdkafka({"sasl.jaas.config": "PlainLoginModule required username='K' password='p\\'\"q';"})
    assert (found["sasl.username"], found["sasl.password"]) == ("K", "p'\"q")
    kerberos = 'Krb5LoginModule required useKeyTab=true keyTab="/k" principal="u@R" serviceName=kafka;'
    found = to_librdkafka({"sasl.jaas.config": kerberos})
    assert found["sasl.kerberos.keytab"] == "/k" and found["sasl.kerberos.principal"] == "u@R"


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"ssl.truststore.location": "/store.jks"}, "name a PEM file"),
        ({"ssl.keystore.location": "/store.jks"}, "name a PKCS#12 file"),
        ({"sasl.jaas.config": "required secret;"}, "neither username nor keyTab"),
        ({"nonsense": "1"}, 'No such configuration property: "nonsense"'),
        ({"acks": "some"}, "acks"),
    ],
)
def test_what_librdkafka_cannot_do_is_refused_without_telling_passwords(
    properties: dict[str, str], reason: str
) -> None:
    with pytest.raises(UnsupportedGraph) as raised:
        checked({"bootstrap.servers": "h:1", **properties}, plain)
    assert reason in raised.value.message and "secret" not in raised.value.message


def test_passwords_that_a_client_repeats_are_hidden() -> None:
    def make(settings: dict[str, str]) -> None:
        raise ValueError(f"cannot use {settings['sasl.password']} of {settings['sasl.username']}")

    with pytest.raises(UnsupportedGraph, match=r"cannot use \*+ of me$"):
        checked({"sasl.jaas.config": 'x required username="me" password="hunter2";'}, make)


def test_settings_that_are_right() -> None:
    properties = {"bootstrap.servers": "h:1", "acks": "all", "compression.type": "zstd"}
    checked(properties, plain)
    checked(properties, transactional)
    # Java's default, written down
    checked({**properties, "delivery.timeout.ms": "120000"}, transactional)


@pytest.mark.parametrize("excluding", [{"acks": "1"}, {"acks": "0"}, {"retries": "0"}])
def test_settings_that_exclude_transactions(excluding: dict[str, str]) -> None:
    properties = {"bootstrap.servers": "h:1", **excluding}
    checked(properties, plain)
    with pytest.raises(UnsupportedGraph, match=f"`{next(iter(excluding))}` must be set"):
        checked(properties, transactional)

"""Settings of Kafka's Java producer as librdkafka names them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from yarnflow.config.secrets import is_secret, masked_text
from yarnflow.errors import UnsupportedGraph

#: Java's name → librdkafka's, where the value is the same
_RENAMED: Final = {
    "max.request.size": "message.max.bytes",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
#: has no part here: serializers are the sink's, buffers are of another kind
_WITHOUT_EFFECT: Final = frozenset({
    "key.serializer", "value.serializer", "buffer.memory", "max.block.ms", "receive.buffer.bytes",
    "send.buffer.bytes", "ssl.truststore.type", "ssl.keystore.type", "ssl.truststore.password",
    "metrics.recording.level", "metric.reporters", "partitioner.class", "partitioner.ignore.keys",
})  # fmt: skip
_STORES: Final = ("ssl.truststore.location", "ssl.keystore.location")
_NAME_CHECK: Final = "ssl.endpoint.identification.algorithm"
_JAAS: Final = "sasl.jaas.config"
_JAAS_OPTION: Final = re.compile(
    r"(\w+)\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|([^\s;\"']+))"
)
_OF_JAAS: Final = {
    "username": "sasl.username",
    "password": "sasl.password",
    "principal": "sasl.kerberos.principal",
    "keyTab": "sasl.kerberos.keytab",
    "serviceName": "sasl.kerberos.service.name",
}


def to_librdkafka(properties: Mapping[str, str]) -> dict[str, str]:
    """Settings for a client of librdkafka.

    Raises
    ------
    UnsupportedGraph
        A setting says what librdkafka cannot do.
    """
    found: dict[str, str] = {
        # as Java's: messages of one key go to the same partition, whoever writes them
        "partitioner": "murmur2_random",
    }
    for key, value in properties.items():
        if key in _WITHOUT_EFFECT:
            continue
        if key in _STORES:
            found.update(_store(key, value))
        elif key == _JAAS:
            found.update(_jaas(value))
        elif key == _NAME_CHECK:
            # Java's empty text: whatever the certificate is for
            found[key] = value or "none"
        else:
            found[_RENAMED.get(key, key)] = value
    return found


def _store(key: str, path: str) -> dict[str, str]:
    truststore = key == _STORES[0]
    if path.endswith((".pem", ".crt", ".cer")) and truststore:
        return {"ssl.ca.location": path}
    if path.endswith((".p12", ".pfx")) and not truststore:
        return {"ssl.keystore.location": path}
    wanted = "a PEM file (ssl.truststore.location=ca.pem)" if truststore else "a PKCS#12 file (.p12)"
    raise UnsupportedGraph(f"the Kafka sink cannot read {key}={path}: a Java key store; name {wanted}")


def _jaas(text: str) -> dict[str, str]:
    options = {
        name: plain or re.sub(r"\\(.)", r"\1", double or single)
        for name, double, single, plain in _JAAS_OPTION.findall(text)
    }
    found = {_OF_JAAS[name]: value for name, value in options.items() if name in _OF_JAAS}
    if not found:
        # without the text, which may hold a password of a form we do not know
        raise UnsupportedGraph(
            f"the Kafka sink finds neither username nor keyTab in {_JAAS}; set librdkafka's sasl.* properties"
        )
    return found


def without_secrets(text: str, settings: Mapping[str, str]) -> str:
    """What a client has said, for people: without the passwords of its settings."""
    return masked_text(text, [value for key, value in settings.items() if value and is_secret(key)])


def checked(properties: Mapping[str, str], make: Callable[[dict[str, str]], object]) -> None:
    """See that librdkafka takes the settings.

    Parameters
    ----------
    make : callable
        Makes a client of them; raises if they are none.

    Raises
    ------
    UnsupportedGraph
        It does not.
    """
    settings = to_librdkafka(properties)
    try:
        make(settings)
    except Exception as error:
        # librdkafka's errors have a text of their own
        said = error.args[0] if error.args else error
        reason = without_secrets(said.str() if hasattr(said, "str") else str(said), settings)
        raise UnsupportedGraph(f"librdkafka does not take the Kafka sink's properties: {reason}") from None

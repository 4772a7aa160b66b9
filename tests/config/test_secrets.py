"""What is hidden from people."""

from __future__ import annotations

import json

import pytest

from yarnflow.config.configuration import Configuration
from yarnflow.config.secrets import is_secret, masked, masked_text, masked_urls


@pytest.mark.parametrize(
    "name",
    [
        "spark.hadoop.fs.azure.account.key.mine.dfs.core.windows.net",
        "spark.hadoop.fs.azure.sas.box.mine.blob.core.windows.net",
        "spark.hadoop.fs.s3a.access.key",
        "spark.kafka.sasl.jaas.config",
        "spark.ssl.keyPassword",
        "spark.db.passwd",
        "AWS_SECRET_ACCESS_KEY",
        "apikey",
    ],
)
def test_secret_names(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name", ["pipeline.job-key", "security.cluster-secret-file", "spark.app.name", "disaster", "PWD"]
)
def test_other_names(name: str) -> None:
    assert not is_secret(name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fs.s3a.secret.key = abc, next", "fs.s3a.secret.key = ******"),
        ("password=correct horse; battery\nnext", "password=******\nnext"),
        ('{"access_key": "AKIA, B", "n": 1}', '{"access_key": "******", "n": 1}'),
        (r'"{\"access_key\": \"A;K\", \"n\": 1}"', r'"{\"access_key\": \"******\", \"n\": 1}"'),
        ("{'token': 'a b', 'n': 1}", "{'token': '******', 'n': 1}"),
        ("-Dspark.x.password='a b' -cp .", "-Dspark.x.password='******' -cp ."),
        ("Authorization: Bearer xyz", "Authorization: ******"),
        ("run --db-password abc --fast", "run --db-password ****** --fast"),
        ("jdbc:x://ann:pw@host/db", "jdbc:x://ann:******@host/db"),
        ("https://ghp_x@a.net/b, abfss://c@d/e", "https://******@a.net/b, abfss://c@d/e"),
        ("https://a.net/b?sv=1&sig=ab%3D&se=2", "https://a.net/b?sv=1&sig=******&se=2"),
        (
            "-----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY-----\nx",
            "-----BEGIN PRIVATE KEY-----******\nx",
        ),
        ("the secret of success", "the secret of success"),
        ("tokens 5", "tokens 5"),
        ("job key k of hdfs://nn:8020/user/ann@x", "job key k of hdfs://nn:8020/user/ann@x"),
    ],
)
def test_what_looks_like_a_secret(text: str, expected: str) -> None:
    assert masked_text(text) == expected


def test_documents() -> None:
    document = {
        "options": {"spark.a.secret": 'x "y', "pipeline.job-key": "k", "tokens": 5},
        "passwords": ["a", {"b": "c"}],
        "graph": [json.dumps({"account-key": 'a "quoted" one', "n": 1})],
    }
    assert masked(document) == {
        "options": {"spark.a.secret": "******", "pipeline.job-key": "k", "tokens": 5},
        "passwords": ["******", {"b": "******"}],
        "graph": ['{"account-key": "******", "n": 1}'],
    }


def test_secrets_within_values_of_options() -> None:
    options = {"spark.driver.extraJavaOptions": "-Djavax.net.ssl.keyStorePassword=abc"}
    assert "abc" not in str(Configuration.from_dict(options, "test").masked())


def test_only_addresses_are_masked_in_messages_of_ours() -> None:
    text = "package g:x-token-provider:1 is not in https://u:p@r/m?access_token=t&b=1; correct it"
    shown = "package g:x-token-provider:1 is not in https://u:******@r/m?access_token=******&b=1; correct it"
    assert masked_urls(text) == shown

"""What is hidden from people."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarnflow.config.configuration import Configuration
from yarnflow.config.options import OPTIONS_BY_KEY
from yarnflow.config.secrets import is_secret, masked, masked_text, masked_urls

#: of its GlobalConfiguration
FLINKS_WORDS = (
    *(
        "password",
        "secret",
        "fs.azure.account.key",
        "apikey",
        "api-key",
        "auth-params",
        "service-key",
        "token",
    ),
    *("basic-auth", "jaas.config", "http-headers"),
)


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
        # what Flink hides, each within a longer name
        *(f"sink.{word}.0" for word in FLINKS_WORDS),
        "spark.hadoop.fs.s3a.session.token",
        "spark.hadoop.fs.s3a.encryption.key",
        "fs.s3a.server-side-encryption.key",
        "fs.gs.auth.service.account.private.key",
        "fs.oss.accessKeyId",
        "fs.oss.accessKeySecret",
        "fs.cosn.userinfo.secretKey",
        "dfs.adls.oauth2.credential",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "kafka.ssl.keystore.key",
        "spark.kafka.ssl.key.pem",
        "tls.private.pem",
        "ssl.key",
        "javax.jdo.option.ConnectionPassword",
        "spark.redis.auth",
        "es.net.http.auth.pass",
        "snowflake.sfpass",
        "PGPASS",
        "mysql.pass",
        "warehouse.pwd",
        "MYSQL_PWD",
        "ldap.pw",
        "connectionString",
        "azure.connection-string",
        "bearer",
        "sas.token",
        "login.cookie",
    ],
)
def test_secret_names(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize("name", [name for name, option in OPTIONS_BY_KEY.items() if not option.secret])
def test_declared_options_are_shown(name: str) -> None:
    assert not is_secret(name)
    for text in (f"{name}: shown", f"-D{name}=shown"):
        assert masked_text(text) == text


@pytest.mark.parametrize("name", [name for name, option in OPTIONS_BY_KEY.items() if option.secret])
def test_declared_secrets_are_hidden(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        *("disaster", "PWD", "OLDPWD", "author", "bypass", "compass.heading", "passive.mode", "keyboard"),
        *("authority", "signature", "pat", "patience", "monkey", "oauth2.endpoint"),
        # Spark's
        *("spark.app.name", "spark.authenticate", "spark.acls.enable", "spark.sql.shuffle.partitions"),
        *("spark.ssl.enabled", "spark.ssl.keyStore", "spark.ssl.keyStoreType", "spark.ssl.trustStore"),
        *("spark.io.encryption.enabled", "spark.network.crypto.enabled", "spark.kerberos.principal"),
        *("spark.kerberos.keytab", "spark.sql.columnNameOfCorruptRecord", "spark.jars.packages"),
        *("spark.hadoop.fs.s3a.endpoint", "spark.hadoop.fs.s3a.connection.maximum"),
        # Flink's
        *("security.kerberos.login.principal", "security.kerberos.login.keytab", "state.backend.type"),
        *("key.fields", "key.format", "key.fields-prefix", "partition.key", "value.fields-include"),
        *("rest.address", "web.submit.enable", "pipeline.jars", "lookup.cache", "scan.startup.mode"),
        # Kafka's
        *("bootstrap.servers", "security.protocol", "sasl.mechanism", "group.id", "acks", "linger.ms"),
        *("key.serializer", "key.deserializer", "ssl.keystore.location", "ssl.keystore.type"),
        *("ssl.truststore.location", "ssl.endpoint.identification.algorithm", "sasl.kerberos.service.name"),
        # others'
        *("es.net.http.auth.user", "hadoop.security.authentication", "hadoop.security.authorized"),
        *("dfs.namenode.kerberos.principal", "connection.timeout", "primary-key", "foreign.key", "row-key"),
    ],
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
        # addresses
        ("jdbc:postgresql://db/a?user=ann&password=pw", "jdbc:postgresql://db/a?user=ann&password=******"),
        ("jdbc:sqlserver://db;user=ann;password=pw", "jdbc:sqlserver://db;user=ann;password=******"),
        ("jdbc:oracle:thin:ann/pw@//db:1521/x", "jdbc:oracle:thin:ann/******@//db:1521/x"),
        ("jdbc:snowflake://a/?user=b&privateKey=pw", "jdbc:snowflake://a/?user=b&privateKey=******"),
        ("redis://:pw@cache:6379/0", "redis://:******@cache:6379/0"),
        ("mongodb+srv://ann:p%2Fw@db/x", "mongodb+srv://ann:******@db/x"),
        ("http://ann:a/b@host/x", "http://ann:******@host/x"),
        ("http://host:8080/of/ann@x", "http://host:8080/of/ann@x"),
        (
            "see https://hooks.slack.com/services/T1/B2/xyz now",
            "see https://hooks.slack.com/services/****** now",
        ),
        ("AccountName=a;AccountKey=pw;x=y", "AccountName=a;AccountKey=******"),
        ("SharedAccessSignature=sv=1&sig=pw", "SharedAccessSignature=******"),
        # command lines and headers
        ("curl -s -u ann:pw http://host", "curl -s -u ann:****** http://host"),
        ("mysql -u ann -ppw base", "mysql -u ann -p****** base"),
        ("redis-cli -a pw ping", "redis-cli -a ****** ping"),
        ("docker run -u 1000:1000 -a stdin x", "docker run -u 1000:1000 -a stdin x"),
        ("run --pass pw --author ann", "run --pass ****** --author ann"),
        ("sent Bearer 0123456789abcdefghij to it", "sent Bearer ****** to it"),
        ("the Bearer of news", "the Bearer of news"),
        ("X-Api-Key: pw", "X-Api-Key: ******"),
        ("got eyJhbGciOiJub25l.e30.sig back", "got ****** back"),
        # names and values
        ("pass=pw", "pass=******"),
        ("db.pwd = pw", "db.pwd = ******"),
        ("{'auth': 'pw', 'n': 1}", "{'auth': '******', 'n': 1}"),
        ("PWD=/home/ann", "PWD=/home/ann"),
        ("2 tests pass: 3 do not", "2 tests pass: 3 do not"),
        ("auth: user ann came", "auth: user ann came"),
        ("rest.authentication.enabled: true", "rest.authentication.enabled: true"),
        ("bypass=on author=ann partition.key=k", "bypass=on author=ann partition.key=k"),
        # sentences are not names and values
        ("the password is wrong", "the password is wrong"),
        ("PASSWORD required", "PASSWORD required"),
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


@given(
    st.sampled_from(
        ["db.password", "dbPassword", "DB_PASSWORD", "redis.auth", "ssl.keystore.key", "my-api-key"]
    ),
    st.sampled_from(["{}={}", "{} = {}", "-D{}={}", '{{"{}": "{}"}}', "{{'{}': '{}', 'n': 1}}", "a=b {}={}"]),
    st.text("CANARY0123456789/+=@:&;%$!", min_size=8),
)
def test_nothing_of_a_secret_is_shown(name: str, form: str, value: str) -> None:
    shown = masked_text(form.format(name, value))
    assert value not in shown and name in shown


@given(st.text("ab=:\"'\\ -.@/?&\nes", max_size=60))
def test_text_without_a_secret_stays(text: str) -> None:
    if "://" not in text:
        assert masked_text(text) == text


@pytest.mark.parametrize(
    "part", ["curl ", "://a:", "mysql ", "redis-cli ", "http://a", "jdbc:oracle:x:", "-", "a"]
)
def test_long_texts_of_others_take_no_longer_than_others(part: str) -> None:
    """Each takes about a second; with gaps of any length they took minutes."""
    text = part * (200_000 // len(part))
    assert masked_text(f"{text} password=x").endswith("password=******")

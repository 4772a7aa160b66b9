"""What a JobManager tells of its options has no secrets, whatever libraries call theirs."""

from __future__ import annotations

import json
from typing import Any, Final

from integration.conftest import Commands, wait_until
from integration.rest.client import Rest
from yarnflow.config.secrets import HIDDEN

VALUE: Final = "canary-of-the-test"
NAMES: Final = (
    "spark.redis.auth",
    "spark.es.net.http.auth.pass",
    "spark.kafka.ssl.keystore.key",
    "spark.hadoop.fs.azure.connection-string",
    "spark.warehouse.pwd",
)


def test_neither_answers_nor_logs_have_values_of_secret_options(yarnflow: Commands) -> None:
    options = [f"-D{name}={VALUE}" for name in NAMES]
    within = f"-Dspark.driver.extraJavaOptions=-Dproxy.pass={VALUE}"
    place = f"-Dio.tmp.dirs={yarnflow.directory}"
    ports = ("-Djobmanager.rpc.port=0", "-Drest.bind-port=0", "-Drest.authentication.enabled=false")
    yarnflow.start("jobmanager", place, *ports, *options, within)
    (file,) = wait_until(
        lambda: list(yarnflow.directory.glob("yarnflow-*/standalone-*/jobmanager.json")), "the JobManager"
    )
    rest = Rest(json.loads(file.read_text())["web_address"])
    shown: dict[str, Any] = {each["key"]: each["value"] for each in rest.get("/jobmanager/config")}
    assert {shown[name] for name in NAMES} == {HIDDEN}
    assert shown["io.tmp.dirs"] == str(yarnflow.directory)
    for path in ("/jobmanager/config", "/jobmanager/environment", "/config"):
        assert VALUE not in rest.ask("GET", path).body.decode(), path
    logs = list((file.parent / "logs").iterdir())
    assert logs and not [log.name for log in logs if VALUE in log.read_text(errors="replace")]

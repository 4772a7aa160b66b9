"""What the Master inside a driver takes over of the driver's options."""

from __future__ import annotations

from yarnflow.spark.launch.master import master_options
from yarnflow.spark.launch.session import SessionSettings, spark_options


def test_security_is_that_of_the_driver_and_nothing_else() -> None:
    user = {
        "spark.network.crypto.enabled": "true",
        "spark.network.crypto.saslFallback": "false",
        "spark.ssl.rpc.enabled": "true",
        "spark.ui.enabled": "true",
        "spark.ui.killEnabled": "true",
        "spark.sql.shuffle.partitions": "7",
    }
    driver = spark_options(SessionSettings("job", "127.0.0.1", "s3cret", user_options=user))
    options = master_options("127.0.0.1", driver)
    for key in ("spark.authenticate", "spark.authenticate.secret", *list(user)[:3]):
        assert options[key] == driver[key]
    assert options["spark.ui.enabled"] == options["spark.ui.killEnabled"] == "false"
    assert "spark.sql.shuffle.partitions" not in options

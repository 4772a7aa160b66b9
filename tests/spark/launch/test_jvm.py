"""A JVM that is lost says where its output is."""

from __future__ import annotations

from pathlib import Path

import pytest

from yarnflow.errors import DriverLost
from yarnflow.spark.launch.jvm import GatewayJvm


def test_a_jvm_that_ends_names_the_file_that_says_why(tmp_path: Path) -> None:
    log_file = tmp_path / "driver-1.jvm.log"
    command = ["sh", "-c", "echo no memory >&2; exit 3"]
    jvm = GatewayJvm.launch(command, host="127.0.0.1", log_file=log_file, scratch=tmp_path)
    with pytest.raises(DriverLost) as raised:
        jvm.wait_ready()
    assert raised.value.message == f"the driver's JVM ended with status 3 before it was up; see {log_file}"
    assert log_file.read_text() == "no memory\n"
    assert jvm.lost().message == f"the driver's JVM ended; see {log_file}"
    jvm.stop()


def test_a_jvm_without_a_file_of_its_own(tmp_path: Path) -> None:
    jvm = GatewayJvm.launch(["false"], host="127.0.0.1", scratch=tmp_path)
    with pytest.raises(DriverLost, match="see the log of this process"):
        jvm.wait_ready()
    jvm.stop()

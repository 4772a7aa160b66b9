"""What ``yarn logs`` prints, and what it says when there is nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from yarnflow.client.yarn.aggregated_logs import collected_lines, parse_lines
from yarnflow.errors import ApplicationNotFound, YarnUnavailable

PRINTED = """\
Container: container_1_01_000001 on node1_34567
LogAggregationType: AGGREGATED
====================================
LogType:a.log
LogLastModifiedTime:Sat Nov 21 00:31:28 +0000 2026
LogLength:24
LogContents:
one
LogType:not a header
two

End of LogType:a.log
**********************************

Container: container_1_01_000001 on node1_34567
LogAggregationType: AGGREGATED
====================================
LogType:empty.log
LogLength:0
LogContents:

End of LogType:empty.log
**********************************


Container: container_1_01_000002 on node2_34567
====================================
LogType:b.log
Log Upload Time:Sat Nov 21 00:31:28 +0000 2016
LogLength:4
Log Contents:
tail
End of LogType:b.log
"""


def test_output_of_yarn_logs() -> None:
    lines = parse_lines(PRINTED.splitlines(keepends=True))
    assert [(item.container_id, item.file, item.line) for item in lines] == [
        ("container_1_01_000001", "a.log", "one\n"),
        ("container_1_01_000001", "a.log", "LogType:not a header\n"),
        ("container_1_01_000001", "a.log", "two\n"),
        ("container_1_01_000002", "b.log", "tail\n"),
    ]


def shim(folder: Path, text: str) -> dict[str, str]:
    path = folder / "yarn"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def test_the_command_is_run(tmp_path: Path) -> None:
    (tmp_path / "out").write_text(PRINTED)
    environ = shim(tmp_path, f'echo "$@" > {tmp_path}/arguments; cat {tmp_path}/out')
    assert len(list(collected_lines("application_1_1", "bob", environ))) == 4
    assert (tmp_path / "arguments").read_text() == "logs -applicationId application_1_1 -appOwner bob\n"


def test_logs_that_are_cut_short_are_not_taken_for_all(tmp_path: Path) -> None:
    (tmp_path / "out").write_text(PRINTED)
    environ = shim(tmp_path, f"cat {tmp_path}/out; echo 'Could not obtain block' >&2; exit 1")
    lines = collected_lines("application_1_1", "bob", environ)
    assert len([next(lines) for _ in range(4)]) == 4
    with pytest.raises(YarnUnavailable, match="not complete.*status 1: Could not obtain block"):
        next(lines)


def test_the_command_finds_nothing_or_is_not_there(tmp_path: Path) -> None:
    environ = shim(
        tmp_path, "echo '26/11/21 00:31:05 WARN x' >&2; echo 'File /tmp/logs/x does not exist.' >&2; exit 255"
    )
    with pytest.raises(ApplicationNotFound, match=r"on HDFS: File /tmp/logs/x does not exist\.$"):
        list(collected_lines("application_1_1", "bob", environ))
    with pytest.raises(YarnUnavailable, match="yarn, which reads logs on HDFS, is not on the path"):
        list(collected_lines("application_1_1", "bob", {"PATH": str(tmp_path / "none")}))

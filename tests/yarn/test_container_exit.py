from __future__ import annotations

import pytest

from tests.yarn.fakes import Answer, daemon
from yarnflow.yarn.container_exit import ContainerExit, container_exit, process_exit
from yarnflow.yarn.web.node_manager import NodeManagers


@pytest.mark.parametrize(
    ("message", "status", "said"),
    [
        (
            "Container killed by YARN for exceeding memory limits. 1.5 GB of 512 MB physical memory used.",
            -104,
            "1.5 GB of 512 MB physical memory",
        ),
        ("Container killed 3.1 GB of 2.1 GB virtual memory used", -103, "3.1 GB of 2.1 GB virtual memory"),
        ("Container released on a *lost* node", -100, "lost"),
        ("Container preempted by scheduler", -102, "preempted"),
        ("[x] Exception from container-launch. Exit code: 35", 35, "container-launch"),
        ("", None, "no reason"),
        ("Something new", None, "Something new"),
    ],
)
def test_what_skein_says_of_failed_containers(message: str, status: int | None, said: str) -> None:
    found = container_exit("FAILED", message)
    assert found.exit_status == status
    assert said in found.diagnostics
    assert not found.vague


def test_memory_kills_are_said_to_be_yarns() -> None:
    found = container_exit("FAILED", "… exceeding memory limits. 1.5 GB of 512 MB physical memory used.")
    assert found.diagnostics == (
        "killed by YARN because it used 1.5 GB of 512 MB physical memory (exit status -104)"
    )


def test_other_ends() -> None:
    assert container_exit("SUCCEEDED", "Completed successfully.") == ContainerExit(0, "")
    assert container_exit("KILLED", "Killed by user request.").exit_status is None
    assert container_exit("FAILED", "Container failed during execution, see logs for more information.").vague


def test_processes_that_were_killed_have_negative_statuses() -> None:
    killed = process_exit(137, "")
    assert killed.exit_status == -9
    assert killed.diagnostics == "its process ended with exit status 137, killed by signal 9"
    assert process_exit(3, "").exit_status == 3


def test_the_node_knows_exit_code_and_log() -> None:
    with daemon() as node:
        node.answers["/ws/v1/node/containers/c1"] = {"container": {"exitCode": 7, "state": "COMPLETE"}}
        log = "\nLogLength:20\nLogContents:\nline\n\nValueError: no"
        node.answers["/ws/v1/node/containers/c1/logs/taskmanager.log"] = log
        assert NodeManagers("u").exit(node.address, "c1", "taskmanager.log") == ContainerExit(
            7, "its process ended with exit status 7; the end of its log:\nline\nValueError: no"
        )


def test_a_node_that_has_forgotten_the_container() -> None:
    with daemon() as node:
        node.answers["/ws/v1/node/containers/c1"] = Answer({}, 404)
        found = NodeManagers("u").exit(node.address, "c1", "x.log")
        assert found == ContainerExit(None, "its process failed")

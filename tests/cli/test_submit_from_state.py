"""State that a submit names: how it is told to the cluster, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.state_cluster import PROGRAM, Cluster
from tests.client import saved
from yarnflow.cli.main import main

pytestmark = pytest.mark.usefixtures("interpreter")


@pytest.mark.parametrize(
    ("flags", "path", "mode"),
    [
        (["-s", "{sp}"], "file://{sp}", None),
        (["-s", "{sp}/_metadata"], "file://{sp}/_metadata", None),
        (["--restore", "{sp}", "--claim-mode", "claim"], "file://{sp}", "CLAIM"),
        (["--fromSavepoint", "{sp}", "-rm", "NO_CLAIM"], "file://{sp}", "NO_CLAIM"),
        (["-Dexecution.state-recovery.path={sp}"], "file://{sp}", None),
        (["--restore", "latest"], "latest", None),
        (["--restore", "none"], "none", None),
        ([], None, None),
    ],
)
def test_submit_from_state(
    flags: list[str], path: str | None, mode: str | None, cluster: Cluster, tmp_path: Path
) -> None:
    root = saved.savepoint(tmp_path)
    script = tmp_path / "script.py"
    script.write_text("print(1)")
    assert main(["submit", "-d", "-t", "remote", *(f.format(sp=root) for f in flags), str(script)]) == 0
    shipped = cluster.submissions[-1].configuration
    assert shipped.get("execution.state-recovery.path") == (path and path.format(sp=root))
    assert shipped.get("execution.state-recovery.claim-mode") == mode


def test_trust_is_asked_for_by_the_job(cluster: Cluster, tmp_path: Path) -> None:
    root = saved.savepoint(tmp_path)
    script = tmp_path / "script.py"
    script.write_text("print(1)")
    for flags, trusted in (["--trust-state"], "true"), ([], None):
        assert main(["submit", "-d", "-t", "remote", "-s", str(root), *flags, str(script)]) == 0
        assert cluster.submissions[-1].configuration.get("execution.state-recovery.trusted") == trusted


@pytest.mark.parametrize("flag", ["-n", "--allowNonRestoredState", "--allow-non-restored-state"])
def test_state_of_operators_that_are_gone_may_be_left_behind(
    flag: str, cluster: Cluster, tmp_path: Path
) -> None:
    root = saved.savepoint(tmp_path)
    program = tmp_path / "prog.py"
    program.write_text(PROGRAM)
    # the client compares the two as well
    assert main(["submit", "-d", "-t", "remote", "-s", str(root), str(program)]) == 97
    assert main(["submit", "-d", "-t", "remote", "-s", str(root), flag, str(program)]) == 0
    shipped = cluster.submissions[-1].configuration
    assert shipped["execution.state-recovery.ignore-unclaimed-state"] == "true"


def test_a_directory_of_the_clusters_machines_need_not_be_here(cluster: Cluster, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("print(1)")
    assert main(["submit", "-d", "-m", "h:1", "-s", "/elsewhere/sp", str(script)]) == 0
    assert cluster.submissions[-1].configuration["execution.state-recovery.path"] == "file:///elsewhere/sp"


def test_a_program_that_does_not_fit_is_not_submitted(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = saved.savepoint(tmp_path)
    program = tmp_path / "prog.py"
    program.write_text(PROGRAM)
    before = len(cluster.submissions)
    assert main(["submit", "-t", "remote", "-s", str(root), str(program)]) == 97
    (error,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert f"does not fit the state in file://{root}" in error and "uid 'counts'" in error
    assert len(cluster.submissions) == before

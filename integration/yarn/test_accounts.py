"""A PyFlink program that knows nothing of yarnflow, with its files and objects in its state, on YARN."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.conftest import wait_until
from integration.yarn.accounts import Accounts
from integration.yarn.jobs import Yarn, application_id, job_id


def _submit(yarn: Yarn, accounts: Accounts, *options: str) -> tuple[str, str]:
    """How another command finds the application, and the job."""
    started = yarn.run("submit", "-t", "yarn-per-job", "-d", *options, accounts.program, *accounts.arguments)
    assert started.process.returncode == 0, started.stderr
    return f"-Dyarn.application.id={application_id(started)}", job_id(started)


def _await_transfers(accounts: Accounts, files: int) -> None:
    wanted = files * accounts.transfers_per_file
    # each look reads all results from HDFS
    wait_until(lambda: accounts.transfers_done() >= wanted, f"{files} files", pause_s=0.5)


def _stop(yarn: Yarn, accounts: Accounts, *arguments: str) -> str:
    """Path of the savepoint."""
    stopped = yarn.run("stop", "-p", f"{accounts.root}/savepoints", *arguments)
    assert stopped.process.returncode == 0, stopped.stderr
    return stopped.stdout.strip()


@pytest.mark.drill
def test_stopped_and_started_again_from_its_savepoint(yarn: Yarn, tmp_path: Path) -> None:
    """Another application, with another secret, makes the objects in the state again: the user owns it."""
    accounts = Accounts(tmp_path, yarn.hadoop.hdfs, "/tests/accounts")
    accounts.write_program()
    accounts.put_input(range(3))
    first = _submit(yarn, accounts)
    _await_transfers(accounts, 3)
    savepoint = _stop(yarn, accounts, *first)
    assert accounts.expected() - accounts.results(), "some timers were to come"
    accounts.put_input(range(3, accounts.files))
    second = _submit(yarn, accounts, "-s", savepoint)
    _await_transfers(accounts, accounts.files)
    _stop(yarn, accounts, *second, "--drain")
    assert accounts.results() == accounts.expected()

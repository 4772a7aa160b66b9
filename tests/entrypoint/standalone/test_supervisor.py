"""What the commands of a standalone cluster refuse before they start anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from yarnflow.config.configuration import Configuration
from yarnflow.entrypoint.standalone.supervisor import run_task_manager
from yarnflow.errors import InvalidMemory


def test_a_task_manager_that_can_never_start_ends_its_command(tmp_path: Path) -> None:
    """Else it is started again and again, and its command says only with which status it ends."""
    said: list[str] = []
    values = {"io.tmp.dirs": str(tmp_path), "taskmanager.memory.process.size": "100m"}
    with pytest.raises(InvalidMemory, match="taskmanager.memory.process.size is 100 MiB"):
        run_task_manager(Configuration.from_dict(values, "-D"), said.append)
    assert not said and not list(tmp_path.iterdir())

"""Commands that are typed in a folder where another user has put modules with the names of libraries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.attack.attacker import attackers_folder, run_attack
from integration.conftest import Commands, commands_in, wait_until

#: runs a function in a Python worker, and a module of its own folder
PROGRAM = """
import neighbour
from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
words = env.from_collection(["a", "b"], type_info=Types.STRING())
words.map(neighbour.doubled, output_type=Types.STRING()).print()
env.execute("typed there")
"""
NEIGHBOUR = """
def doubled(word: str) -> str:
    return word + word
"""


@pytest.fixture
def typed_there() -> Iterator[Commands]:
    """Commands in a folder of the attacker's."""
    with attackers_folder() as folder:
        run_attack("plant_modules", folder)
        with commands_in(folder) as commands:
            yield commands


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program in a folder of its user's."""
    (tmp_path / "neighbour.py").write_text(NEIGHBOUR)
    written = tmp_path / "job.py"
    written.write_text(PROGRAM)
    return written


def loaded(commands: Commands) -> list[str]:
    """Return what of the attacker's has run, and as what."""
    return [f"{file.name}: {file.read_text()}" for file in commands.directory.glob("loaded-*")]


@pytest.mark.gate
def test_a_job_manager_loads_no_module_of_the_folder(typed_there: Commands, tmp_path: Path) -> None:
    started = typed_there.start("jobmanager", f"-Dio.tmp.dirs={tmp_path}", "-Djobmanager.rpc.port=0")
    wait_until(lambda: "serves at" in started.stdout or started.process.poll() is not None, "the JobManager")
    assert loaded(typed_there) == []
    assert "serves at" in started.stdout


@pytest.mark.gate
def test_a_program_loads_none_and_its_own(typed_there: Commands, tmp_path: Path, program: Path) -> None:
    """Neither the command nor a process of its cluster, down to the workers that run its functions."""
    done = typed_there.run("submit", "-t", "local", f"-Dio.tmp.dirs={tmp_path}", program)
    assert loaded(typed_there) == []
    assert done.process.returncode == 0, done.stderr
    assert {"aa", "bb"} <= set(done.stdout.split())

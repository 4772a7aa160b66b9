"""How each engine runs a program: a command and its environment."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from integration.bench.pyflink.cases import BYTEWAX, PROCESS, SQL, THREAD, YARNFLOW, Case

_HERE: Final = Path(__file__).parent
_ROOT: Final = _HERE.parents[2]
PROGRAMS: Final = _HERE / "programs"
#: seconds between the snapshots of Bytewax's state
_SNAPSHOTS_S: Final = "2"
_PROCESSES: Final = "2"


@dataclass(frozen=True)
class Command:
    """What to run, and where."""

    words: list[str]
    directory: Path
    environment: dict[str, str] = field(default_factory=dict)


def command(engine: str, case: Case, source: Path, directory: Path) -> Command:
    """The command that runs a case on an engine.

    Parameters
    ----------
    engine : str
        One of those a case has records for.
    case : Case
    source : Path
        Folder of the input.
    directory : Path
        An empty folder for whatever the run leaves.
    """
    program = str(PROGRAMS / case.program)
    if engine == YARNFLOW:
        return yarnflow_command([program, str(source), "process", *case.arguments], directory)
    if engine == BYTEWAX:
        venv = peer("bytewax")
        database = directory / "recovery"
        database.mkdir()
        python = str(venv / "bin" / "python")
        subprocess.run([python, "-m", "bytewax.recovery", str(database), _PROCESSES], check=True)
        flow = f"bytewax_counter:flow('{source}')"
        recovery = ["-r", str(database), "-s", _SNAPSHOTS_S, "-b", "0"]
        return Command(
            [python, "-m", "bytewax.testing", flow, "-p", _PROCESSES, *recovery],
            directory,
            {"PYTHONPATH": str(PROGRAMS)},
        )
    arguments = [program, str(source), "thread" if engine == THREAD else "process", *case.arguments]
    if engine == SQL:
        arguments = [str(PROGRAMS / "sql_counter.py"), str(source)]
    return pyflink_command(arguments, directory)


def pyflink_command(words: Sequence[str], directory: Path) -> Command:
    """The command that runs a program and its arguments on Apache PyFlink."""
    venv = peer("pyflink")
    return Command(
        [str(venv / "bin" / "python"), *words],
        directory,
        # Flink starts its Python workers as `python`; FLINK_HOME would be used instead of the wheel's
        {
            "PATH": f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "FLINK_HOME": "",
            "PYTHONPATH": "",
            "FLINK_LOG_DIR": str(directory),
        },
    )


def yarnflow_command(words: Sequence[str], directory: Path) -> Command:
    """The command that runs a program and its arguments on yarnflow, from this source tree."""
    path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
    return Command(
        [sys.executable, "-m", "yarnflow", *words],
        directory,
        {"YARNFLOW_CONF_IO_TMP_DIRS": str(directory), "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"},
    )


def peer(name: str) -> Path:
    """The virtual environment of another engine, made at first use."""
    made = subprocess.run(
        [str(_ROOT / "scripts" / "lib" / "peer-venv"), name], stdout=subprocess.PIPE, text=True, check=True
    )
    return Path(made.stdout.strip())


ENGINES: Final = (YARNFLOW, PROCESS, THREAD, BYTEWAX, SQL)

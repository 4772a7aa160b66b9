"""Apache Airflow with this project's provider, as ``scripts/airflow`` runs it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from integration.conftest import ROOT
from tests.patience import PATIENCE


@dataclass(frozen=True, slots=True)
class Installation:
    """A virtual environment with Airflow in it."""

    directory: Path

    @classmethod
    def find(cls) -> Installation:
        """The one of this machine; the first time it comes over the network, about 300 MB.

        Raises
        ------
        AssertionError
            It could not be installed; carries what pip said.
        """
        done = subprocess.run(
            [ROOT / "scripts/lib/peer-venv", "airflow"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return cls(Path(done.stdout.strip()))

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.directory / "bin/python"

    @property
    def airflow(self) -> Path:
        """Its command."""
        return self.directory / "bin/airflow"

    def run(self, *command: str | Path, environment: Mapping[str, str]) -> str:
        """Run a command of this environment to its end; returns its standard output.

        Raises
        ------
        AssertionError
            It failed; carries what it said.
        """
        foreign = foreign_variables()
        kept = {name: value for name, value in os.environ.items() if name not in foreign}
        done = subprocess.run(
            [str(word) for word in command],
            env={**kept, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE.command_s,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        return done.stdout

    def new_database(self, file: Path, environment: Mapping[str, str]) -> None:
        """Make an SQLite database with Airflow's tables.

        A copy of one that was made once: to make the tables takes seconds of processor time.
        """
        template = self.directory / "tables.sqlite"
        if not template.exists():
            made = file.with_suffix(".new")
            url = {"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{made}"}
            self.run(self.airflow, "db", "migrate", environment={**environment, **url})
            # another run may be doing the same
            partial = template.with_name(f"{template.name}.{os.getpid()}")
            shutil.move(made, partial)
            partial.replace(template)
        shutil.copyfile(template, file)


def foreign_variables() -> set[str]:
    """Variables of this process for the project's own environment, or for an Airflow of the user's."""
    own = ("PYTHONPATH", "VIRTUAL_ENV")
    return {name for name in os.environ if name in own or name.startswith("AIRFLOW")}

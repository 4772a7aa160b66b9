"""One Airflow for all tests of the provider, beside the YARN where its jobs run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration.airflow.components import Airflow, running_airflow
from integration.airflow.installation import Installation
from integration.conftest import commands_in
from integration.hadoop import HadoopCluster


@pytest.fixture(scope="session")
def installation() -> Installation:
    """Airflow's own environment, with the provider."""
    return Installation.find()


@pytest.fixture(scope="session")
def airflow(hadoop: HadoopCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    """An Airflow; a test may kill its components, if they run again at its end."""
    with commands_in(tmp_path_factory.mktemp("airflow")) as commands:
        with running_airflow(commands, hadoop.env()) as airflow:
            yield airflow

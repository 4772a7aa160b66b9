"""One Airflow for all tests of the provider, beside the YARN where its jobs run."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.airflow.components import Airflow, running_airflow
from integration.airflow.installation import Installation
from integration.airflow.jobs import AirflowOnYarn
from integration.conftest import commands_in
from integration.hadoop import HadoopCluster
from integration.yarn.conftest import flights, masters, yarn
from integration.yarn.jobs import Yarn

__all__ = ["flights", "masters", "yarn"]


@pytest.fixture(scope="session")
def installation() -> Installation:
    """Airflow's own environment, with the provider."""
    return Installation.find()


# not for the session: it takes a fifth of a processor also while nobody uses it
@pytest.fixture(scope="package")
def airflow(hadoop: HadoopCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    """An Airflow whose default connection leads to YARN.

    A test may kill its components, if they run again at its end, and has DAGs of its own.
    """
    with commands_in(tmp_path_factory.mktemp("airflow")) as commands:
        with running_airflow(commands) as airflow:
            extra = {
                "target": "yarn-per-job",
                # Airflow's own environment has no PySpark
                "command": str(Path(sys.executable).with_name("yarnflow")),
                "env": hadoop.env(),
            }
            airflow.api.set_connection("yarnflow_default", "yarnflow", extra=json.dumps(extra))
            yield airflow


@pytest.fixture
def on_yarn(airflow: Airflow, yarn: Yarn) -> Iterator[AirflowOnYarn]:
    """Both for one test, which leaves no job and no run of its DAGs."""
    both = AirflowOnYarn(airflow, yarn)
    try:
        yield both
    finally:
        both.drop_dags()

"""The provider as Airflow sees it, looked at as Airflow's own checks look at its own providers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from integration.airflow.installation import Installation
from integration.conftest import ROOT
from yarnflow import __version__

pytestmark = pytest.mark.gate

_INSPECT: Final = ROOT / "integration/airflow/inspect_provider.py"
#: nothing a worker or the triggerer imports for the provider may bring one of them
_HEAVY: Final = frozenset(
    ("cloudpickle", "hdfs", "kazoo", "numpy", "pandas", "py4j", "pyarrow", "pyspark", "skein", "thrift")
)
_ROOM: Final = re.compile(r"yarnflow\.airflow\.(operators|sensors|triggers)\.\w+")
#: of yarnflow itself: options, errors, names of states, and what starts a process
_LIGHT: Final = re.compile(r"yarnflow\.(airflow|config|core\.states|errors|process\.(spawn|output))\b")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An Airflow without a database."""
    return {"AIRFLOW_HOME": str(tmp_path_factory.mktemp("home")), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}


@pytest.fixture(scope="module")
def inspected(installation: Installation, home: dict[str, str]) -> dict[str, Any]:
    """What :mod:`integration.airflow.inspect_provider` has told."""
    told = installation.run(installation.python, _INSPECT, environment=home).splitlines()[-1]
    return dict(json.loads(told))


def test_description_is_of_airflows_schema(inspected: dict[str, Any]) -> None:
    assert inspected["schema"] == []


def test_all_that_is_described_is_there(inspected: dict[str, Any]) -> None:
    assert inspected["missing"] == []
    hook = "yarnflow.airflow.hooks.yarnflow.YarnflowHook"
    assert inspected["hook"] == [hook, "yarnflow_conn_id", "yarnflow"]
    assert "yarnflow.airflow.links.YarnflowDashboardLink" in inspected["links"]
    assert "yarnflow.airflow.triggers.job" in inspected["triggers"]
    inside = [name for name in inspected["modules"] if _ROOM.fullmatch(name)]
    undescribed = [name for name in inside if name not in inspected["listed"]]
    # what operators share is no operator
    shared = ("about_job", "earlier", "kept", "record", "stopping", "task_jobs")
    assert undescribed == [f"yarnflow.airflow.operators.{name}" for name in shared]


def test_importing_it_brings_nothing_heavy(
    inspected: dict[str, Any], record_property: Callable[[str, object], None]
) -> None:
    for name in ("airflow", "provider"):
        needed = inspected[name]
        record_property(name, needed)
        print(f"{name}: {needed['seconds']:.2f} s of processor time, {needed['mib']:.1f} MiB")
    assert not _HEAVY & set(inspected["libraries"])
    assert [name for name in inspected["own"] if not _LIGHT.match(name + ".") and "." in name[9:]] == []
    assert inspected["warnings"] == []
    assert inspected["provider"]["mib"] < 20


def test_airflows_command_shows_it(installation: Installation, home: dict[str, str]) -> None:
    told = installation.run(
        installation.airflow, "providers", "list", "--output", "json", environment=home
    )
    providers = json.loads(told[told.index("[") :])
    (own,) = [provider for provider in providers if provider["package_name"] == "yarnflow"]
    assert own["version"] == __version__


def test_nothing_of_it_is_imported_before_it_is_used(installation: Installation, tmp_path: Path) -> None:
    """Airflow asks for all descriptions at each start, and needs only this module for it."""
    told = installation.run(
        installation.python,
        "-c",
        "import sys; from yarnflow.airflow.get_provider_info import get_provider_info; get_provider_info();"
        "print([name for name in sys.modules if name.split('.')[0] in ('yarnflow', 'airflow')])",
        environment={"AIRFLOW_HOME": str(tmp_path)},
    )
    assert set(json.loads(told.replace("'", '"'))) == {
        "yarnflow", "yarnflow.airflow", "yarnflow.airflow.get_provider_info"
    }  # fmt: skip

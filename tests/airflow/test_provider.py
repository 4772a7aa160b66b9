"""The provider as Airflow sees it."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path

import pytest

from yarnflow.airflow.get_provider_info import get_provider_info
from yarnflow.airflow.hooks.settings import read_settings

INFO = get_provider_info()
MODULES = [
    module
    for kind in ("operators", "sensors", "hooks", "triggers")
    for group in INFO[kind]
    for module in group["python-modules"]
]


def test_the_provider_has_the_form_of_airflows_own() -> None:
    import jsonschema

    airflow = files("airflow")
    schema = json.loads((airflow / "provider_info.schema.json").read_text())
    jsonschema.validate(INFO, schema)
    connections = json.loads((airflow / "provider.yaml.schema.json").read_text())
    jsonschema.validate(INFO["connection-types"], connections["properties"]["connection-types"])


def test_airflow_finds_it() -> None:
    points = entry_points(group="apache_airflow_provider")
    (found,) = [point for point in points if point.value.startswith("yarnflow.")]
    assert found.load()() == INFO


@pytest.mark.parametrize("module", MODULES)
def test_every_module_that_it_names_is_there(module: str) -> None:
    assert import_module(module).__doc__


@pytest.mark.parametrize(
    "name", [*INFO["extra-links"], *(each["hook-class-name"] for each in INFO["connection-types"])]
)
def test_every_class_that_it_names_is_there(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    assert getattr(import_module(module), attribute)


def test_the_form_of_a_connection_has_all_keys_of_its_extra() -> None:
    (connection,) = INFO["connection-types"]
    values = {
        name: "http://x" if "string" in field["schema"]["type"] else {"a": "1"}
        for name, field in connection["conn-fields"].items()
    }
    settings = read_settings("c", "", None, None, values)
    assert all(getattr(settings, name) for name in values)


def test_importing_it_brings_nothing_that_a_worker_has_no_use_for() -> None:
    heavy = (
        *("pyspark", "py4j", "skein", "thrift", "hdfs", "kazoo", "pyarrow", "pandas", "numpy", "cloudpickle"),
        *("yarnflow.api", "yarnflow.client", "yarnflow.rpc", "yarnflow.spark", "yarnflow.yarn"),
    )
    code = (
        "import sys, airflow.sdk, airflow.triggers.base\n"
        "before = set(sys.modules)\n"
        f"for module in {[*MODULES, 'yarnflow.airflow.assets', 'yarnflow.airflow.links']!r}:\n"
        "    __import__(module)\n"
        f"print([name for name in sorted(set(sys.modules) - before) if name.startswith({heavy!r})])\n"
    )
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"

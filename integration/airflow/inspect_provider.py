"""Run by Airflow's own Python: what importing the provider does, as JSON.

    python integration/airflow/inspect_provider.py
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import psutil

#: whatever a DAG with any deferrable operator imports
_AIRFLOWS = ("airflow.sdk", "airflow.triggers.base", "airflow.sdk.execution_time.task_runner", "httpx")


def _imported(names: list[str]) -> dict[str, float]:
    before, begin = psutil.Process().memory_info().rss, time.process_time()
    for name in names:
        importlib.import_module(name)
    after = psutil.Process().memory_info().rss
    return {"seconds": time.process_time() - begin, "mib": (after - before) / 2**20}


def _listed(info: dict[str, Any]) -> list[str]:
    """All modules and classes that the provider's description names."""
    found: list[str] = []
    for kind in ("operators", "sensors", "hooks", "triggers", "bundles"):
        for integration in info.get(kind, ()):
            found += integration["python-modules"]
    found += [connection["hook-class-name"] for connection in info["connection-types"]]
    return [*found, *info["extra-links"]]


def _missing(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ImportError:
        module, _, attribute = name.rpartition(".")
        return not hasattr(importlib.import_module(module), attribute)
    return False


def main() -> None:
    """Import, look and tell."""
    alone = _imported(list(_AIRFLOWS))
    import yarnflow.airflow
    from yarnflow.airflow.get_provider_info import get_provider_info

    found = pkgutil.walk_packages(yarnflow.airflow.__path__, "yarnflow.airflow.")
    modules = [module.name for module in found]
    known = set(sys.modules)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        provider = _imported(["yarnflow.airflow", *modules])
    imported = sorted({name.partition(".")[0] for name in set(sys.modules) - known})
    own = sorted(name for name in sys.modules if name.startswith("yarnflow."))

    import airflow
    from airflow.providers_manager import ProvidersManager

    validator: Any = importlib.import_module("jsonschema").Draft7Validator

    schema = json.loads(Path(airflow.__path__[0], "provider_info.schema.json").read_text(encoding="utf-8"))
    manager = ProvidersManager()
    own_info = manager.providers["yarnflow"]
    hook = manager.hooks["yarnflow"]
    assert hook is not None
    print(
        json.dumps(
            {
                "airflow": alone,
                "provider": provider,
                "modules": modules,
                "libraries": imported,
                "own": own,
                "warnings": [str(warning.message) for warning in told],
                "schema": [error.message for error in validator(schema).iter_errors(get_provider_info())],
                "version": own_info.version,
                "missing": [name for name in _listed(own_info.data) if _missing(name)],
                "listed": _listed(own_info.data),
                "hook": [hook.hook_class_name, hook.connection_id_attribute_name, hook.hook_name],
                "links": sorted(manager.extra_links_class_names),
                "triggers": sorted(trigger.trigger_class_name for trigger in manager.trigger),
            }
        )
    )


if __name__ == "__main__":
    main()

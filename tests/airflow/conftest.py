"""Fixtures for tests of the provider, or the reason why those are skipped: only one extra brings Airflow."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("airflow"):
    from tests.airflow.fixtures import (  # noqa: F401
        _called_by_a_test,
        cluster,
        cluster_with_job,
        command,
        connections,
        context,
        hook,
        server,
    )
else:

    class _ModuleWithoutAirflow(pytest.Module):
        """A module that cannot be imported here."""

        def collect(self) -> list[pytest.Item | pytest.Collector]:
            pytest.skip("Apache Airflow is not installed; the extra integration brings it")

    def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module:
        """Skip each module by its name."""
        return _ModuleWithoutAirflow.from_parent(parent, path=module_path)

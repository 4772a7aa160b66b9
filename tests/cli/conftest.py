"""For all tests of commands: no cluster that happens to run on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _no_clusters_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Commands that name no cluster look for those of the user, which must not decide a test."""
    monkeypatch.setenv("YARNFLOW_CONF_IO_TMP_DIRS", str(tmp_path / "clusters"))

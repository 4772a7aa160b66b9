"""What tests of PyFlink's own programs share."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from integration.pyflink.programs import PYFLINK_VERSION


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder ``pyflink`` of Apache PyFlink's wheel, with its examples; nothing of it is installed."""
    directory = tmp_path_factory.mktemp("wheel")
    download = ["pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", str(directory)]
    subprocess.run([sys.executable, "-m", *download, f"apache-flink=={PYFLINK_VERSION}"], check=True)
    (archive,) = directory.glob("*.whl")
    with zipfile.ZipFile(archive) as file:
        file.extractall(directory, [name for name in file.namelist() if name.startswith("pyflink/examples/")])
    return directory / "pyflink"

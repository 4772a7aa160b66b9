"""Python environments as they look on disk, made without pip."""

from __future__ import annotations

import json
import os
import platform
import sys
from importlib import metadata
from pathlib import Path

from yarnflow.client.environment.check import REQUIRED

MINOR = f"{sys.version_info.major}.{sys.version_info.minor}"


def make_environment(prefix: Path, *, without: tuple[str, ...] = (), kind: str = "venv") -> Path:
    """An environment with everything containers need, as far as can be seen from outside."""
    packages = prefix / "lib" / f"python{MINOR}" / "site-packages"
    packages.mkdir(parents=True)
    (prefix / "bin").mkdir()
    base = prefix.parent / "base-python"
    base.write_text("")
    base.chmod(0o755)
    if kind == "venv":
        (prefix / "bin" / "python3").symlink_to(base)
        (prefix / "bin" / "python").symlink_to("python3")
        (prefix / "pyvenv.cfg").write_text(
            f"home = {prefix.parent}\nversion = {platform.python_version()}\nprompt = a=b\n"
            f"command = {sys.executable} -m venv {prefix}\n"
        )
    else:
        program = prefix / "bin" / "python"
        program.write_text("")
        program.chmod(0o755)
    if kind == "conda":
        (prefix / "conda-meta").mkdir()
        (prefix / "conda-meta" / f"python-{platform.python_version()}-h1_0.json").write_text("{}")
    for name in REQUIRED:
        if name not in without:
            add_distribution(packages, name, metadata.version(name))
    (packages / "pyspark").mkdir(exist_ok=True)
    (packages / "pyspark" / "__init__.py").write_text("spark = 1\n")
    os.utime(packages / "pyspark" / "__init__.py", (1_700_000_000.7, 1_700_000_000.7))
    script = prefix / "bin" / "tool"
    script.write_text(f"#!{prefix}/bin/python\nprint(1)\n")
    script.chmod(0o755)
    return prefix


def add_distribution(packages: Path, name: str, version: str, *, editable: bool = False) -> Path:
    """A ``.dist-info`` directory; returns it."""
    info = packages / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "RECORD").write_text(f"{info.name}/METADATA,,\n")
    if editable:
        url = {"url": "file:///src", "dir_info": {"editable": True}}
        (info / "direct_url.json").write_text(json.dumps(url))
    return info


def packages_of(prefix: Path) -> Path:
    return prefix / "lib" / f"python{MINOR}" / "site-packages"

"""Writes modules with the names of libraries into a folder: each says there whose process has loaded it."""

from __future__ import annotations

import sys
from pathlib import Path

from integration.attack.attacker import become_attacker

#: what one process or another of yarnflow's imports
_NAMES = (
    *("click", "cloudpickle", "fsspec", "hdfs", "kazoo", "msgspec", "numpy", "pandas", "psutil", "py4j"),
    *(
        "pyarrow",
        "pyspark",
        "requests",
        "rich",
        "skein",
        "starlette",
        "thrift",
        "uvicorn",
        "yaml",
        "yarnflow",
    ),
    *("json", "socket", "tempfile"),
)
_MODULE = """
import os, sys
with open({marker!r}, "a") as file:
    print(os.getuid(), *sys.orig_argv, file=file)
os._exit(9)
"""


def main(folder: Path) -> None:
    """Plant them, and let everybody write beside them."""
    become_attacker()
    for name in _NAMES:
        marker = str(folder / f"loaded-{name}")
        (folder / f"{name}.py").write_text(_MODULE.format(marker=marker))
    folder.chmod(0o777)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

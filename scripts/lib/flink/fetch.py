"""Print the folder with Flink's jars, fetched by Maven at first use.

PYTHONPATH=scripts/lib python3 -m flink.fetch
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from hadoop.errors import ClusterError
from hadoop.jars import fetch_by_maven
from hadoop.output import say

POM = Path(__file__).with_name("pom.xml")


def fetch() -> Path:
    """The folder with ``lib/*.jar``."""
    found = re.search(r"<flink\.version>([^<]+)<", POM.read_text(encoding="utf-8"))
    assert found is not None
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return fetch_by_maven(
        POM,
        Path(base, "yarnflow", f"flink-{found[1]}").absolute(),
        f"Flink's client {found[1]} (about 85 MB)",
        ["dependency:copy-dependencies"],
        {"target/dependency": "lib"},
    )


if __name__ == "__main__":
    try:
        print(fetch())
    except ClusterError as error:
        say(f"error: {error}")
        sys.exit(error.status)

"""Projects whose one file has the name that half of the world's programs have."""

from __future__ import annotations

from pathlib import Path
from typing import Final

#: writes seven numbers as JSON to the folder that its argument names
NIGHTLY: Final = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.appName("nightly").getOrCreate()
spark.range(7).write.json(sys.argv[1])
"""


def main_of(directory: Path, text: str) -> Path:
    """Write a project's ``main.py`` and return its path."""
    directory.mkdir(exist_ok=True)
    path = directory / "main.py"
    path.write_text(text)
    return path

"""The variables that tell a machine where Hadoop's client configuration is; light, unlike reading it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: the first that is set counts
HADOOP_VARIABLES: Final = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")


def names_hadoop(environ: Mapping[str, str]) -> bool:
    """Whether one of them is set; a ``HADOOP_HOME`` alone does not count."""
    return any(map(environ.get, HADOOP_VARIABLES))

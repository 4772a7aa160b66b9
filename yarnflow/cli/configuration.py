"""The configuration of a command: directory, environment and ``-D``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    # `yarnflow --help` and `version` read no configuration and pay for none of it
    from yarnflow.config.configuration import Configuration

CONF_DIR_VARIABLE: Final = "YARNFLOW_CONF_DIR"


def load_configuration(conf_dir: Path | None, dynamic: Sequence[str]) -> Configuration:
    """File, environment and ``-D``, the last one strongest; with the directory's ``log.yaml``.

    Raises
    ------
    ConfigError
        As :meth:`yarnflow.config.configuration.Configuration.load`.
    """
    from yarnflow.config.configuration import Configuration
    from yarnflow.config.log_file import LOG_FILE_NAME
    from yarnflow.config.options import cluster

    if conf_dir is None and os.environ.get(CONF_DIR_VARIABLE):
        conf_dir = Path(os.environ[CONF_DIR_VARIABLE])
    configuration = Configuration.load(conf_dir, os.environ, dynamic)
    if conf_dir is None or configuration.is_set(cluster.LOG_CONFIG_FILE):
        return configuration
    log_file = conf_dir.absolute() / LOG_FILE_NAME
    if not log_file.exists():
        return configuration
    return configuration.with_values({cluster.LOG_CONFIG_FILE.key: str(log_file)}, source=str(conf_dir))

"""Options of authentication between the processes of a cluster."""

from __future__ import annotations

from typing import Final

from yarnflow.config import declare
from yarnflow.config.option import ConfigOption, Scope

CLUSTER_SECRET_FILE: Final[ConfigOption[str]] = declare.string(
    "security.cluster-secret-file",
    "",
    Scope.CLUSTER,
    "File with the secret all processes of the cluster and its clients share, readable by its owner only. "
    "Every connection proves its knowledge. Empty = made in the cluster's runtime directory when the "
    "cluster starts.",
)

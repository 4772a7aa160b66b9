"""Options of authentication between the processes of a cluster."""

from __future__ import annotations

from typing import Final

from yarnflow.config import declare
from yarnflow.config.option import ConfigOption, Scope

CLUSTER_SECRET_FILE: Final[ConfigOption[str]] = declare.string(
    "security.cluster-secret-file",
    "",
    Scope.CLUSTER,
    "File with the secret that all processes of the cluster and its clients share, readable only by its "
    "owner. Every connection is authenticated with it. Empty = made in the cluster's runtime directory when "
    "the cluster starts.",
)

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
TRANSLATED_ADDRESSES: Final[ConfigOption[str]] = declare.string(
    "security.translated-addresses",
    "",
    Scope.CLUSTER,
    "host:port, or host:* where ports are not known before (drivers, processes on YARN), with commas between "
    "several: how processes of the cluster may be dialled by others that "
    "reach them at another address than their own, as through the published port of a container, a port "
    "forward or a load balancer. Any other connection must come in at the very address that its client has "
    "reached, else somebody is passing it on; of those dialled by an address named here this is not checked, "
    "so name one only if nobody else can listen there.",
)

"""Spark's Master inside a driver, which gives it a cluster manager that launches nothing."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, Final

from yarnflow.core.hosts import bind_address
from yarnflow.spark.java_classes import java_class

_MASTER: Final = "org.apache.spark.deploy.master.Master"
#: of a driver's options, what both sides of a connection must agree on
_SECURITY: Final = ("spark.authenticate", "spark.network.", "spark.ssl.", "spark.io.encryption.")


class MasterEndpoint:
    """The in-process Master, which has no page: anybody could end the job there.

    Parameters
    ----------
    gateway : JavaGateway
    host : str
        The address it listens at.
    options : mapping
        The driver's Spark options, of which it takes what is about security.
    """

    def __init__(self, gateway: Any, host: str, options: Mapping[str, str]) -> None:
        conf = java_class(gateway, "org.apache.spark.SparkConf")(False)
        for key, value in master_options(host, options).items():
            conf.set(key, value)
        # as in Master.startRpcEnvAndEndpoint, which keeps the Master and its page to itself
        managers = java_class(gateway, "org.apache.spark.SecurityManager")
        manager = managers(conf, *(getattr(managers, f"$lessinit$greater$default${n}")() for n in (2, 3)))
        masters = java_class(gateway, _MASTER)
        self.rpc_env = java_class(gateway, "org.apache.spark.rpc.RpcEnv").create(
            masters.SYSTEM_NAME(), host, 0, conf, manager, False
        )
        try:
            master = masters(self.rpc_env, self.rpc_env.address(), 0, manager, conf)
            endpoint = self.rpc_env.setupEndpoint(masters.ENDPOINT_NAME(), master)
            # it answers when it is up, with its page; no application can have come yet
            ports = "org.apache.spark.deploy.master.MasterMessages$BoundPortsRequest$"
            endpoint.askSync(_module(gateway, ports), _module(gateway, "scala.reflect.ClassTag$").Any())
            getattr(master, f"{_MASTER.replace('.', '$')}$$webUi")().stop()
        except BaseException:
            self.rpc_env.shutdown()
            raise
        self.url = f"spark://{host}:{self.rpc_env.address().port()}"


def master_options(host: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the Master's own options, for the options of its driver."""
    return {
        **{key: value for key, value in options.items() if key.startswith(_SECURITY)},
        "spark.driver.bindAddress": bind_address(host),
        "spark.ui.enabled": "false",
        # for the moment until its page is closed
        "spark.ui.killEnabled": "false",
        # a page that is closed at once needs no keys
        "spark.ssl.standalone.enabled": "false",
        "spark.master.rest.enabled": "false",
        "spark.ui.prometheus.enabled": "false",
        "spark.rpc.io.numConnectionsPerPeer": "1",
        # jobs that begin in the same second may write their event logs into one directory
        "spark.deploy.appIdPattern": f"app-%s-%04d-{secrets.token_hex(4)}",
    }


def _module(gateway: Any, name: str) -> Any:
    """An object of Scala, which is the only one of its class."""
    return getattr(java_class(gateway, name), "MODULE$")

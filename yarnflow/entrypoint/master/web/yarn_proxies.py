"""The addresses from which YARN's web proxy calls.

Hadoop counterpart: ``AmIpFilter``, which trusts the same addresses.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Collection, Iterator
from typing import Final
from urllib.parse import urlsplit

from yarnflow.config.hadoop_conf import HadoopConf
from yarnflow.errors import YarnflowError

logger: Final = logging.getLogger(__name__)

#: as the filter of Hadoop: names may get other addresses
_KNOWN_FOR_S: Final = 300.0


class YarnProxies(Collection[str]):
    """IP addresses; looked up again from time to time, in a thread of its own."""

    def __init__(self) -> None:
        self._addresses: frozenset[str] = frozenset()
        self._lock = threading.Lock()
        self._next_s = time.monotonic() + _KNOWN_FOR_S
        self._look_up()

    def __contains__(self, address: object) -> bool:
        with self._lock:
            is_due = time.monotonic() >= self._next_s
            if is_due:
                self._next_s = time.monotonic() + _KNOWN_FOR_S
        if is_due:
            threading.Thread(target=self._look_up, name="yarn-proxies", daemon=True).start()
        return address in self._addresses

    def __iter__(self) -> Iterator[str]:
        return iter(self._addresses)

    def __len__(self) -> int:
        return len(self._addresses)

    def _look_up(self) -> None:
        try:
            self._addresses = frozenset(
                str(found[4][0])
                for host in proxy_hosts(HadoopConf.load(os.environ))
                for found in _lookup(host)
            )
        except YarnflowError as error:
            logger.warning("YARN's web proxy is not known, so it may not read without a token: %s", error)


def proxy_hosts(conf: HadoopConf) -> list[str]:
    """Hosts of the web proxy: its own, else those of the ResourceManagers.

    Raises
    ------
    YarnUnavailable
        High availability is on, but a ResourceManager's host is not named.
    """
    own = conf.get("yarn.web-proxy.address")
    if own:
        return [urlsplit(f"//{own}").hostname or ""]
    return [urlsplit(address).hostname or "" for address in conf.resource_manager_web_addresses()]


def _lookup(host: str) -> list[tuple[object, object, object, object, tuple[object, ...]]]:
    try:
        return list(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM))
    except OSError as error:
        logger.warning("The host %s of YARN's web proxy is not known: %s", host, error)
        return []

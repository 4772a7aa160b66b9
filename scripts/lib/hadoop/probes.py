"""Whether a daemon does its work, asked the way its users ask it.

Each probe returns None when all is well, else what is still missing.
"""

from __future__ import annotations

import http.client
import json
import socket
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any

from hadoop.layout import State, user_name

_TIMEOUT_S = 10.0
# a daemon that is about to start can answer with anything
_ERRORS = (OSError, http.client.HTTPException, ValueError, LookupError, TypeError)
# daemons are on this machine, whatever http_proxy says
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def missing(state: State, daemon: str) -> str | None:
    """What ``daemon`` lacks of being ready."""
    probes: dict[str, Callable[[State, str], str | None]] = {
        "zookeeper": _zookeeper,
        "namenode": _namenode,
        "datanode": _datanode,
        "resourcemanager": _resource_manager,
        "nodemanager": _node_manager,
    }
    try:
        return probes[daemon.partition("-")[0]](state, daemon)
    except _ERRORS as error:
        return f"does not answer ({error})"


def first_use(state: State) -> str | None:
    """Make the folders that users of an HDFS count on, write a file and read it; safe to be done again.

    It goes by WebHDFS, DataNode included, as yarnflow's own client does.
    """
    path, content = "/tmp/.scripts-hadoop-probe", b"there and back"
    folders = {"/user": "755", f"/user/{user_name()}": "755", "/tmp": "1777", "/tmp/logs": "1777"}
    try:
        for folder, mode in folders.items():
            _webhdfs(state, "PUT", folder, "MKDIRS", permission=mode)
            _webhdfs(state, "PUT", folder, "SETPERMISSION", permission=mode)
        _webhdfs(state, "PUT", path, "CREATE", content, overwrite="true")
        read = _webhdfs(state, "GET", path, "OPEN")
        _webhdfs(state, "DELETE", path, "DELETE")
    except _ERRORS as error:
        return str(error)
    return None if read == content else f"HDFS gave back {read!r} for {content!r}"


def _zookeeper(state: State, daemon: str) -> str | None:
    port = state.ports[daemon]["client"]
    if _four_letters(port, b"ruok") != "imok":
        return "does not answer ruok"
    # without a quorum a server of an ensemble answers this with a sentence
    if "Mode: " not in (said := _four_letters(port, b"srvr")):
        return said.strip() or "has no quorum yet"
    return None


def _namenode(state: State, daemon: str) -> str | None:
    system = _hdfs(state)
    return None if system["FSState"] == "Operational" else "is in safe mode"


def _datanode(state: State, daemon: str) -> str | None:
    # a NameNode that was restarted knows none yet; one that was not still knows the DataNode's predecessor
    info = _get(state.ports[daemon]["http"], "/jmx?qry=Hadoop:service=DataNode,name=DataNodeInfo")["beans"][0]
    actors = json.loads(info["BPServiceActorInfo"])
    if not actors or any(actor["ActorState"] != "RUNNING" for actor in actors):
        return "has not registered with the NameNode"
    return None if _hdfs(state)["NumLiveDataNodes"] >= 1 else "is not known to the NameNode"


def _resource_manager(state: State, daemon: str) -> str | None:
    info = _get(state.ports[daemon]["http"], "/ws/v1/cluster/info")["clusterInfo"]
    return None if (info["state"], info["haState"]) == ("STARTED", "ACTIVE") else "is not active"


def _node_manager(state: State, daemon: str) -> str | None:
    ports = state.ports[daemon]
    own = _get(ports["http"], "/ws/v1/node/info")["nodeInfo"]
    answer = _get(state.ports["resourcemanager"]["http"], "/ws/v1/cluster/nodes?states=RUNNING")
    for node in (answer["nodes"] or {}).get("node", []):
        # an older report is its predecessor's
        if node["id"].endswith(f":{ports['rpc']}") and node["lastHealthUpdate"] >= own["nmStartupTime"]:
            return None
    return "has not registered with the ResourceManager"


def _hdfs(state: State) -> Any:
    query = "/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
    return _get(state.ports["namenode"]["http"], query)["beans"][0]


def _get(port: int, path: str) -> Any:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Accept": "application/json"})
    with _OPENER.open(request, timeout=_TIMEOUT_S) as answer:
        return json.load(answer)


def _webhdfs(
    state: State, method: str, path: str, operation: str, content: bytes | None = None, **parameters: str
) -> bytes:
    query = urllib.parse.urlencode({"op": operation, "user.name": user_name(), **parameters})
    url = f"http://127.0.0.1:{state.ports['namenode']['http']}/webhdfs/v1{path}?{query}"
    if content is not None:
        # urllib follows no redirect of a PUT, so ask for the DataNode's address first
        request = urllib.request.Request(f"{url}&noredirect=true", method=method)
        with _OPENER.open(request, timeout=_TIMEOUT_S) as answer:
            url = json.load(answer)["Location"]
    request = urllib.request.Request(url, data=content, method=method)
    if content is not None:
        request.add_header("Content-Type", "application/octet-stream")
    try:
        with _OPENER.open(request, timeout=_TIMEOUT_S) as answer:
            return bytes(answer.read())
    except urllib.error.HTTPError as error:
        said = error.read().decode(errors="replace")
        raise OSError(f"{operation} {path}: {error.code} {said}") from None


def _four_letters(port: int, word: bytes) -> str:
    with socket.create_connection(("127.0.0.1", port), timeout=_TIMEOUT_S) as connection:
        connection.sendall(word)
        answer = b""
        while part := connection.recv(4096):
            answer += part
    return answer.decode(errors="replace")

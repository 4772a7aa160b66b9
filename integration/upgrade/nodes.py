"""Nodes of a cluster in ZooKeeper as a file: their content, and who may read and change them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient
from kazoo.security import ACL, OPEN_ACL_UNSAFE, Id

from tests.patience import PATIENCE
from yarnflow.ha.connection import ZooKeeperConnection
from yarnflow.ha.settings import ZooKeeperSettings


@contextmanager
def anybody_at(quorum: str) -> Iterator[KazooClient]:
    """Open a session at ZooKeeper that knows no secret."""
    client = KazooClient(hosts=quorum)
    client.start(PATIENCE.answer_s)
    try:
        yield client
    finally:
        client.stop()
        client.close()


@contextmanager
def member_at(quorum: str, root: str, secret: str) -> Iterator[KazooClient]:
    """Open a session at ZooKeeper of a process that knows the cluster's secret."""
    connection = ZooKeeperConnection(ZooKeeperSettings(quorum, root), secret.encode(), None, lambda _: None)
    connection.open()
    try:
        yield connection.client
    finally:
        connection.close()


def record_nodes(client: KazooClient, root: str, file: Path) -> None:
    """Write a node and all below it into a file, but for those that end with somebody's session."""
    found: dict[str, Any] = {}

    def visit(path: str) -> None:
        content, stat = client.get(path)
        if stat.ephemeralOwner:
            return
        acl, _stat = client.get_acls(path)
        found[path.removeprefix(root)] = {
            "content": base64.b64encode(content).decode(),
            "acl": [[entry.perms, entry.id.scheme, entry.id.id] for entry in acl],
        }
        for name in sorted(client.get_children(path)):
            visit(f"{path}/{name}")

    visit(root)
    file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def load_nodes(client: KazooClient, root: str, file: Path) -> None:
    """Make the nodes of a file; last, they get their rights, which may shut this client out."""
    recorded: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    client.ensure_path(root.rpartition("/")[0])
    for path, node in recorded.items():
        client.create(root + path, base64.b64decode(node["content"]), acl=OPEN_ACL_UNSAFE)
    for path, node in reversed(recorded.items()):
        client.set_acls(root + path, [ACL(perms, Id(scheme, name)) for perms, scheme, name in node["acl"]])

"""Signatures of JSON objects, such as manifests of savepoints, with a key that others do not have.

A manifest has a digest of every file, so its signature vouches for all of them.  Flink has no counterpart.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Final

_FIELD: Final = "signature"


def savepoint_key(cluster_secret: bytes) -> bytes:
    """What savepoints of a cluster are signed with; tells nothing about its secret."""
    return hmac.new(cluster_secret, b"savepoints", hashlib.sha256).digest()


def signed(manifest: bytes, key: bytes) -> bytes:
    """A manifest with its signature.

    Parameters
    ----------
    manifest : bytes
        A JSON object.
    key : bytes
        Of :func:`savepoint_key`, or made of the cluster's secret in another way; empty = it stays unsigned.
    """
    described = json.loads(manifest)
    described[_FIELD] = _signature(described, key) if key else ""
    return (json.dumps(described, indent=1) + "\n").encode()


def is_signed(manifest: bytes, key: bytes) -> bool:
    """Whether a manifest was signed with a key, and is as it was then."""
    described = json.loads(manifest)
    found = described.get(_FIELD)
    return bool(key) and isinstance(found, str) and hmac.compare_digest(_signature(described, key), found)


def _signature(described: dict[str, object], key: bytes) -> str:
    content = {name: value for name, value in described.items() if name != _FIELD}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return "hmac-sha256:" + hmac.new(key, text.encode("ascii"), hashlib.sha256).hexdigest()

"""Manifests signed with a cluster's key."""

from __future__ import annotations

import json
from dataclasses import replace

from yarnflow.core.checkpoint.manifest import SavepointFile, SavepointMetadata, from_bytes, to_bytes
from yarnflow.core.checkpoint.messages import CheckpointKind
from yarnflow.core.checkpoint.program_shape import ProgramShape
from yarnflow.core.checkpoint.signature import is_signed, savepoint_key, signed
from yarnflow.core.ids import JobId

KEY = savepoint_key(b"secret")
MANIFEST = SavepointMetadata(
    7,
    CheckpointKind.SAVEPOINT,
    JobId("a" * 32),
    "flüge",
    "",
    1,
    "1.0",
    ProgramShape("GRAPH"),
    files=(SavepointFile("query-a/metadata", 3, "sha256:aa"),),
)


def test_a_signed_manifest_says_the_same_and_is_known_again() -> None:
    content = signed(to_bytes(MANIFEST), KEY)
    assert is_signed(content, KEY)
    found = from_bytes(content, "here")
    assert found.signature
    assert replace(found, signature="") == MANIFEST
    # its form is not what counts
    assert is_signed(json.dumps(json.loads(content), sort_keys=True).encode(), KEY)


def test_another_key_and_none_have_not_signed_it() -> None:
    content = signed(to_bytes(MANIFEST), KEY)
    assert not is_signed(content, savepoint_key(b"another"))
    assert not is_signed(content, b"")
    unsigned = signed(to_bytes(MANIFEST), b"")
    assert not is_signed(unsigned, b"")
    assert not is_signed(unsigned, KEY)
    assert not is_signed(b'{"format_version": 1}', KEY)


def test_any_change_breaks_the_signature() -> None:
    described = json.loads(signed(to_bytes(MANIFEST), KEY))
    described["files"][0]["checksum"] = "sha256:bb"
    assert not is_signed(json.dumps(described).encode(), KEY)

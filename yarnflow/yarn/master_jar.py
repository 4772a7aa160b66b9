"""Skein's jar as the ApplicationMaster gets it: one cached file, with a start page that leads to ours.

YARN's tracking URL is skein's start page, whose template fails on Java 17; ours sends the browser
on to the JobManager's page, which skein serves below it.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from yarnflow.config.directories import writing_to

#: name in the master's working directory, whose jars come first on its class path
SKEIN_JAR_NAME: Final = "skein.jar"
#: skein serves the JobManager's page below ``pages/`` under this name
WEB_ROUTE: Final = "jobmanager"
_TEMPLATE: Final = "overview.mustache.html"
#: relative, since YARN's proxy puts a prefix before it
_PAGE: Final = (
    f'<!DOCTYPE html><html><head><meta http-equiv="refresh" content="0; url=pages/{WEB_ROUTE}/">'
    f'<title>yarnflow</title></head><body><a href="pages/{WEB_ROUTE}/">JobManager</a></body></html>\n'
)


def skein_jar() -> Path:
    """Jar of the installed skein."""
    found = find_spec("skein")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("No module named 'skein'", name="skein")
    return Path(found.origin).parent / "java" / "skein.jar"


def master_jar(cache_dir: Path) -> Path:
    """The jar, made at the first call and kept below ``cache_dir``.

    Parameters
    ----------
    cache_dir : Path
        The user's cache directory of yarnflow.

    Raises
    ------
    ConfigError
        It cannot be written to.
    """
    original = skein_jar()
    status = original.stat()
    key = f"{original}\n{status.st_size}\n{status.st_mtime_ns}\n{_PAGE}"
    target = cache_dir / "skein" / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.jar"
    if target.exists():
        return target
    with writing_to(target.parent):
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file, zipfile.ZipFile(original) as old:
                with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
                    for entry in old.infolist():
                        content = old.read(entry) if entry.filename != _TEMPLATE else _PAGE.encode()
                        # the entry's own time: the same jar gives the same bytes
                        new.writestr(entry, content, zipfile.ZIP_DEFLATED)
            os.replace(temporary, target)
        finally:
            Path(temporary).unlink(missing_ok=True)
    return target

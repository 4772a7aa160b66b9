"""How often skein's ApplicationMaster calls YARN.

skein calls every 5 s, or every second while requests are open, or at half of
``yarn.am.liveness-monitor.expiry-interval-ms`` if that is less; and a request waits for the next
call.  It reads that property from its own class path, which begins with the jars of its working
directory: a jar with YARN's defaults and a smaller value there changes this one ApplicationMaster
and nobody else.
"""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path
from typing import Final

from yarnflow.yarn.class_path import yarn_defaults

_PROPERTY: Final = "yarn.am.liveness-monitor.expiry-interval-ms"
#: skein's own, when nothing is pending
DEFAULT_INTERVAL_MS: Final = 5_000
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)


def write_application_jar(
    target: Path, skein_jar: Path | None, hadoop_jars: tuple[Path, ...], interval_ms: int
) -> None:
    """Write what skein sends along as ``.skein.jar``.

    Parameters
    ----------
    target : Path
    skein_jar : Path or None
        Skein itself, to be part of it; None = the ApplicationMaster finds it elsewhere.
    hadoop_jars : tuple of Path
        Where YARN's defaults are; without them, skein's own interval stays.
    interval_ms : int
    """
    content = None
    if interval_ms < DEFAULT_INTERVAL_MS:
        content = yarn_defaults(hadoop_jars, {_PROPERTY: str(2 * max(1, interval_ms))})
    if skein_jar is not None:
        shutil.copyfile(skein_jar, target)
    with zipfile.ZipFile(target, "w" if skein_jar is None else "a", zipfile.ZIP_DEFLATED) as archive:
        if skein_jar is None:
            archive.writestr(zipfile.ZipInfo("META-INF/MANIFEST.MF", _EPOCH), "Manifest-Version: 1.0\n")
        if content is not None:
            entry = zipfile.ZipInfo("yarn-default.xml", _EPOCH)
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)

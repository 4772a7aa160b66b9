"""The jars of a job on the class path of its driver.

Most were found by whoever has submitted the job.  What is left, such as options of a cluster or of a
script's session builder, is brought here, with the JVM that is there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from yarnflow.config.hadoop.paths import with_file_system
from yarnflow.core.jars.request import JarRequest, check_files, jars_of, with_jars
from yarnflow.core.uris import file_uri, split_uri
from yarnflow.spark.jars import ivy
from yarnflow.spark.jars.store import PackageStore
from yarnflow.spark.launch.jar_loader import JarLoader


class DriverJars:
    """Those of one driver.

    Parameters
    ----------
    gateway : py4j gateway
    loader : JarLoader
        The class path of its JVM.
    directory : Path
        For jars that come from elsewhere.
    """

    def __init__(self, gateway: Any, loader: JarLoader, directory: Path) -> None:
        self._gateway = gateway
        self._loader = loader
        self._directory = directory

    def bring(self, options: Mapping[str, str]) -> dict[str, str]:
        """Put all that options ask for on the class path.

        Returns
        -------
        dict of str to str
            The options; their ``spark.jars`` are what executors need.

        Raises
        ------
        JarError
            A jar or package cannot be had.
        """
        request = JarRequest.of(options)
        if not request.empty:
            files = {
                **{jar: [_uri(jar)] for jar in request.files},
                **{jar: [_of_each_machine(jar)] for jar in request.class_paths},
            }
            check_files(options, files)
            # in a container nobody finds the user's cache again
            kept = self._directory / "packages" if os.environ.get("CONTAINER_ID") else None
            packages = PackageStore(self._resolve, kept).get(request)
            options = with_jars(options, files, request.packages, list(map(file_uri, packages)))
        self._loader.add(jars_of(options), self._directory, options)
        return dict(options)

    def _resolve(self, request: JarRequest, ivy_directory: Path) -> list[Path]:
        return ivy.resolve(self._gateway, request, ivy_directory)


def _uri(jar: str) -> str:
    scheme, _, path = split_uri(jar)
    return with_file_system(jar) if scheme else file_uri(Path(path).expanduser().absolute())


def _of_each_machine(jar: str) -> str:
    scheme, _, path = split_uri(jar)
    return f"local:{path}" if scheme in ("", "file") else with_file_system(jar)

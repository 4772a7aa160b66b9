"""The jars of a job, found on this machine.

Files are checked and packages resolved before a cluster is asked for anything; the copies that a cluster
needs are its target's business (:mod:`yarnflow.client.yarn.shipping`).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

from yarnflow.client.jars.files import contents_of, find_class_paths, find_jars
from yarnflow.config.configuration import Configuration
from yarnflow.core.jars.connectors import connector_packages
from yarnflow.core.jars.coordinates import MavenCoordinate
from yarnflow.core.jars.request import (
    BROUGHT,
    SPARK_JARS,
    JarRequest,
    check_files,
    merged,
    with_jars,
)
from yarnflow.core.uris import file_uri
from yarnflow.spark.jars.store import PackageStore

_DRIVER_OPTIONS: Final = "spark.driver.extraJavaOptions"


class JarBringer:
    """Finds what options ask for.

    Parameters
    ----------
    note : callable
        Told what the user may want to know.
    store : callable, optional
        Makes the store of packages, given the JVM's properties; default: that of the user's cache.
    """

    def __init__(
        self,
        note: Callable[[str], None],
        store: Callable[[tuple[str, ...]], PackageStore] | None = None,
    ) -> None:
        self._note = note
        self._store = store or self._user_store

    def bring(
        self,
        options: Mapping[str, str],
        connectors: Sequence[str] = (),
        own_options: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """The options of a job, its jars in ``spark.jars``: as ``file:`` those of this machine.

        Parameters
        ----------
        options : mapping
            Key → text.
        connectors : sequence of str
            Those of its graph (:attr:`yarnflow.graph.job_graph.JobGraph.connectors`).
        own_options : mapping, optional
            What a script sets for its session itself.

        Raises
        ------
        JarError
            A jar or package that cannot be had, or things that cannot go together.
        """
        options = merged(options, own_options) if own_options else dict(options)
        request, files = self._found(options)
        needed = _alternatives(options, request, connectors)
        if request.empty and not needed:
            return options
        packages, paths = self._packages(options, request, needed) if request.packages or needed else ((), [])
        resolved = [file_uri(path) for path in paths]
        contents = contents_of(jar for jars in (*files.values(), resolved) for jar in jars)
        return with_jars(options, files, packages, resolved, contents)

    def check(self, options: Mapping[str, str], own_options: Mapping[str, str] | None = None) -> None:
        """Refuse what can be seen to be wrong without a JVM and without network; as :meth:`bring`."""
        self._found(merged(options, own_options or {}))

    def _found(self, options: Mapping[str, str]) -> tuple[JarRequest, dict[str, list[str]]]:
        request = JarRequest.of(options)
        files = {
            **find_jars(request.files, self._note),
            **find_class_paths(request.class_paths, self._note),
        }
        check_files(options, files)
        return request, files

    def _packages(
        self,
        options: Mapping[str, str],
        request: JarRequest,
        needed: Sequence[Sequence[MavenCoordinate]],
    ) -> tuple[tuple[MavenCoordinate, ...], list[Path]]:
        from yarnflow.spark.launch.jvm import split_options

        asked = split_options(_DRIVER_OPTIONS, options.get(_DRIVER_OPTIONS, ""))
        store = self._store(tuple(option for option in asked if option.startswith("-D")))
        return store.get_first(request, [(*request.packages, *more) for more in needed or [()]])

    def _user_store(self, properties: tuple[str, ...]) -> PackageStore:
        from yarnflow.process.spawn import wrap_command
        from yarnflow.spark.jars.resolver import resolve_apart

        def resolve(request: JarRequest, ivy_directory: Path) -> list[Path]:
            return resolve_apart(request, ivy_directory, wrap_command, properties)

        # in a container nobody finds the user's cache again
        kept = Path("packages").absolute() if os.environ.get("CONTAINER_ID") else None
        return PackageStore(resolve, kept, self._note)


def configuration_with_jars(
    configuration: Configuration, note: Callable[[str], None], own_options: Mapping[str, str] | None = None
) -> Configuration:
    """A configuration with the jars that it asks for, found on this machine.

    Raises
    ------
    JarError
        See :meth:`JarBringer.bring`.
    """
    options = configuration.to_dict()
    brought = JarBringer(note).bring(options, own_options=own_options)
    changed = {key: text for key, text in brought.items() if options.get(key) != text}
    return configuration.with_values(changed, source="jars") if changed else configuration


def _alternatives(
    options: Mapping[str, str], request: JarRequest, connectors: Sequence[str]
) -> list[tuple[MavenCoordinate, ...]]:
    """Lists of packages for connectors, best first; empty = what they need is there or asked for."""
    choices = []
    for connector in connectors:
        lists = connector_packages(connector, version("pyspark"))
        if not lists:
            continue
        artifact = lists[0][0].artifact
        there = (options.get(BROUGHT, ""), options.get(SPARK_JARS, ""), *request.files, *request.class_paths)
        if not any(artifact in text for text in (*there, *map(str, request.packages))):
            choices.append(lists)
    if not choices:
        return []
    return [tuple(itertools.chain(*chosen)) for chosen in itertools.product(*choices)]

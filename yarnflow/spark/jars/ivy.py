"""Packages by Spark's own resolver, ``MavenUtils`` over Ivy, in any JVM of Spark.

Decides what Ivy is told, and what its failures mean.  Ivy's cache is not made for two at a time: callers
see to that.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, Final

from yarnflow.config.secrets import masked_urls
from yarnflow.core.jars.request import IVY_SETTINGS, REPOSITORIES, JarRequest
from yarnflow.errors import JarError, JarNotFound
from yarnflow.spark.java_classes import java_class
from yarnflow.spark.launch.jar_loader import java_message
from yarnflow.spark.launch.spark_home import spark_home

#: ``unresolved dependency: org.x#y;1.0: not found``, as Ivy reports it
_UNRESOLVED: Final = re.compile(r"unresolved dependency: ([^#\s]+)#([^;\s]+);(\S+?): ([^,\]]+)")
#: ``org.x#y;1.0!y.jar``
_NOT_DOWNLOADED: Final = re.compile(r"download failed: ([^#\s]+)#([^;\s]+);([^!\s]+)!(\S+?)[,\]]")
#: asked last by Spark, and not reached from behind many a firewall, where nobody misses it
_SPARK_PACKAGES: Final = "https://repos.spark-packages.org/"
_UNREACHABLE: Final = re.compile(
    r"Server access error at url (?P<url>\S+)(?: \((?P<why>[^)]*)\))?|Host \S+ not found\. url=(?P<of>\S+)"
)


def resolve(gateway: Any, request: JarRequest, ivy_directory: Path) -> list[Path]:
    """Find packages and all they depend on.

    Parameters
    ----------
    gateway : py4j gateway
    request : JarRequest
        Its files are not looked at.
    ivy_directory : Path
        Where Ivy keeps what it finds; below its ``jars`` are the results.

    Returns
    -------
    list of Path
        Jars, those that Spark has itself left out.

    Raises
    ------
    JarNotFound
        A package that no repository has; all of them answered.
    JarError
        A repository could not be asked, or Ivy refuses the settings.
    """
    convert = java_class(gateway, "scala.jdk.javaapi.CollectionConverters")
    some = java_class(gateway, "scala.Option").apply
    output = java_class(gateway, "java.io.ByteArrayOutputStream")()
    stream = java_class(gateway, "java.io.PrintStream")(output)
    maven = java_class(gateway, "org.apache.spark.util.MavenUtils")
    repositories = some(",".join(request.repositories) or None)
    directory = some(str(ivy_directory))
    excludes = java_class(gateway, "java.util.ArrayList")()
    for item in request.excludes:
        excludes.add(item)
    coordinates = ",".join(map(str, request.packages))
    try:
        without_local = maven.buildIvySettings(repositories, directory, False, stream)
        if request.ivy_settings:
            path = str(Path(request.ivy_settings).expanduser().absolute())
            settings = maven.loadIvySettings(path, repositories, directory, stream)
        else:
            settings = maven.buildIvySettings(repositories, directory, True, stream)
    except Exception as error:
        said = masked_urls(java_message(error))
        raise JarError(f"{IVY_SETTINGS} ({request.ivy_settings}): {said}") from None
    try:
        found = maven.resolveMavenCoordinates(
            coordinates,
            settings,
            some(without_local),
            True,
            convert.asScala(excludes).toSeq(),
            False,
            stream,
        )
    except Exception as error:
        problem = str(getattr(error, "java_exception", None) or error)
        # its own text may have the credentials of a repository in it
        raise failure_of(problem, str(output), request) from None
    return without_own([Path(path) for path in convert.asJava(found)], own_jars())


def own_jars() -> frozenset[str]:
    """Names of the jars that Spark brings."""
    return frozenset(jar.name for jar in (spark_home() / "jars").glob("*.jar"))


def without_own(jars: Iterable[Path], own: Collection[str]) -> list[Path]:
    """Those that Spark does not have in the very same version; they would only be copied about.

    >>> without_own([Path("/ivy/org.a_b_2.13-1.jar"), Path("/ivy/org.a_c-1.jar")], {"b_2.13-1.jar"})
    [PosixPath('/ivy/org.a_c-1.jar')]
    """
    return [jar for jar in jars if not any(jar.name[m.end() :] in own for m in re.finditer("_", jar.name))]


def failure_of(problem: str, log: str, request: JarRequest) -> JarError:
    """What Ivy's failure means.

    Parameters
    ----------
    problem : str
        The exception's text.
    log : str
        What Ivy has printed.
    """
    kind, text = _said_of(problem, log, request)
    return kind(masked_urls(text))


def _said_of(problem: str, log: str, request: JarRequest) -> tuple[type[JarError], str]:
    asked = ", ".join(map(str, request.packages))
    missing = [":".join(match[:3]) for match in _UNRESOLVED.findall(problem)]
    broken = [":".join(match[:3]) for match in _NOT_DOWNLOADED.findall(problem)]
    named = ", ".join(dict.fromkeys(missing or broken)) or asked
    silent = ((match["url"] or match["of"], match["why"]) for match in _UNREACHABLE.finditer(log))
    address, why = next((pair for pair in silent if not pair[0].startswith(_SPARK_PACKAGES)), ("", ""))
    if address:
        reason = f" ({why})" if why else ""
        return JarError, (
            f"package {named} could not be looked for: no answer from {address}{reason}; see to the "
            f"network, or name a repository that can be reached: {REPOSITORIES}=file:///…"
        )
    if missing or broken:
        where = ", ".join(("Maven Central", *request.repositories))
        if request.ivy_settings:
            where = f"the repositories of {request.ivy_settings}"
        needed = "" if set(named.split(", ")) <= set(map(str, request.packages)) else f" (asked for: {asked})"
        return JarNotFound, (
            f"package {named}{needed} is not in {where}; correct it, or name its repository in {REPOSITORIES}"
        )
    first = (problem.strip().splitlines() or ["no reason given"])[0]
    return JarError, f"package {named} could not be resolved: {first}"

"""Jars of jobs in a JVM that runs already.

The JVM of a driver is up before its job is known, so jars cannot be on its command line.  As ``SparkSubmit``
does, a class loader that can be added to is the context class loader of every thread; here it is set from
outside, by py4j, before anything of Spark runs.  Threads that are started later inherit it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from yarnflow.config.secrets import masked_urls
from yarnflow.core.uris import split_uri
from yarnflow.errors import JarError
from yarnflow.spark.java_classes import java_class

logger = logging.getLogger(__name__)

#: a JVM that has just started has three: main, the gateway's server and its connection
_MOST_THREADS: Final = 64
_HADOOP_PREFIX: Final = "spark.hadoop."


class JarLoader:
    """The class path of a JVM beside Spark's own jars; made by :meth:`install`."""

    def __init__(self, gateway: Any, loader: Any) -> None:
        self._gateway = gateway
        self._loader = loader
        self._lock = threading.Lock()
        #: address → the file that was added for it
        self._added: dict[str, Path] = {}

    @classmethod
    def install(cls, gateway: Any) -> JarLoader:
        """Give a JVM that has just started a class path that can be added to.

        Every driver does it, with jars or without, so each call of Java is one too many.
        """
        thread_class = java_class(gateway, "java.lang.Thread")
        current = thread_class.currentThread()
        present = current.getContextClassLoader()
        none = gateway.new_array(java_class(gateway, "java.net.URL"), 0)
        loader = java_class(gateway, "org.apache.spark.util.MutableURLClassLoader")(none, present)
        # the threads of Java itself are in another group; that of the gateway's server, whose threads serve
        # Python's, is in this one
        threads = gateway.new_array(thread_class, _MOST_THREADS)
        for number in range(current.getThreadGroup().enumerate(threads)):
            _give(threads[number], present, loader)
        return cls(gateway, loader)

    def add(self, jars: Sequence[str], directory: Path, options: Mapping[str, str]) -> None:
        """Add jars; those that are there already are neither fetched nor added again.

        Parameters
        ----------
        jars : sequence of str
            Paths of this machine, or URIs of a file system that Hadoop or Java knows.
        directory : Path
            Where jars of other machines are copied to.
        options : mapping
            Spark's, for the file systems.

        Raises
        ------
        JarError
            One cannot be read.
        """
        with self._lock:
            for jar in jars:
                if jar in self._added:
                    continue
                file = self._local(jar, directory, options)
                if file not in self._added.values():
                    self._loader.addURL(java_class(self._gateway, "java.io.File")(str(file)).toURI().toURL())
                self._added[jar] = file

    def _local(self, jar: str, directory: Path, options: Mapping[str, str]) -> Path:
        scheme, _, path = split_uri(jar)
        if scheme in ("", "file", "local"):
            if not Path(path).is_file():
                raise JarError(
                    f"jar {jar} is not on the driver's machine; put it there, or name it by a URI that every "
                    "machine of the cluster can read"
                )
            return Path(path)
        return self._fetched(jar, directory, options)

    def _fetched(self, jar: str, directory: Path, options: Mapping[str, str]) -> Path:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        conf = java_class(self._gateway, "org.apache.spark.SparkConf")(False)
        for key, value in options.items():
            if key.startswith(_HADOOP_PREFIX):
                conf.set(key, value)
        hadoop = java_class(self._gateway, "org.apache.spark.deploy.SparkHadoopUtil").get()
        target = java_class(self._gateway, "java.io.File")(str(directory))
        downloads = java_class(self._gateway, "org.apache.spark.util.DependencyUtils")
        try:
            found = downloads.downloadFile(jar, target, conf, hadoop.newConfiguration(conf))
        except Exception as error:
            said = masked_urls(f"jar {jar} cannot be read by the driver: {java_message(error)}")
            raise JarError(said) from None
        # Java writes a file as a URI, whatever signs its path has
        return Path(unquote(split_uri(str(found))[2]))


def _give(thread: Any, present: Any, loader: Any) -> None:
    """Another class loader for a thread that has the one of the others."""
    try:
        if present.equals(thread.getContextClassLoader()):
            thread.setContextClassLoader(loader)
    except Exception as error:
        # some run no code but their own, and refuse it
        logger.info("A thread keeps its class loader: %s", java_message(error))


def java_message(error: Exception) -> str:
    """The first line of what Java says of an error that py4j raised."""
    said = getattr(error, "java_exception", None) or error
    return (str(said).strip().splitlines() or [type(error).__name__])[0]

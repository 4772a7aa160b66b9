"""The files of the installed Spark, found without importing it.

TaskManagers start Spark executors and never import pyspark themselves: that would cost them
memory and a second of start.  Decides where the jars lie and with which module options Spark
wants its JVMs started.  Flink counterpart: ``FLINK_LIB_DIR``.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import re
import zipfile
from pathlib import Path
from typing import Final

from yarnflow.errors import ResourceError

#: log4j 2 configuration of drivers and executors
LOG4J_CONFIG: Final = Path(__file__).with_name("log4j2.properties")
#: the same as JSON lines
LOG4J_JSON_CONFIG: Final = Path(__file__).with_name("log4j2-json.properties")

_MODULE_OPTIONS_CLASS: Final = "org/apache/spark/launcher/JavaModuleOptions.class"
_PRINTABLE: Final = re.compile(rb"-[\x21-\x7e]{5,}")
#: Makes the JVM print a warning on every start and switches off the archived module graph; only
#: MLlib's vector BLAS asks for it, and falls back by itself.
_UNWANTED: Final = "--add-modules=jdk.incubator.vector"


@functools.cache
def spark_home() -> Path:
    """The directory of the installed ``pyspark`` package.

    Raises
    ------
    ResourceError
        pyspark is not installed in this environment.
    """
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ResourceError("pyspark is not installed in this Python environment; run: pip install yarnflow")
    return Path(spec.origin).parent


def class_path(hadoop_conf_dir: str = "") -> str:
    """Spark's jars as Spark's own launcher names them, then Hadoop's configuration.

    Parameters
    ----------
    hadoop_conf_dir : str
        Directory of ``core-site.xml`` and the like; empty = there is none.  It comes last, where
        Spark's launcher has it first: archives of classes are of use only to a class path that
        begins with the one they were made with.  No jar of Spark has files of those names.
    """
    jars = f"{spark_home() / 'jars'}/*"
    return f"{jars}{os.pathsep}{hadoop_conf_dir}" if hadoop_conf_dir else jars


@functools.cache
def module_options() -> tuple[str, ...]:
    """JVM options without which Spark cannot reach into the JDK.

    They are read from the constant pool of Spark's own list, so they are those of the
    installed version, whichever it is.
    """
    for jar in sorted((spark_home() / "jars").glob("spark-launcher*.jar")):
        with zipfile.ZipFile(jar) as archive:
            return options_in_class(archive.read(_MODULE_OPTIONS_CLASS))
    raise ResourceError(f"no spark-launcher jar below {spark_home() / 'jars'}; reinstall pyspark")


def options_in_class(content: bytes) -> tuple[str, ...]:
    """The JVM options among the strings of a class file.

    Java stores each constant as a tag, two bytes of length and the text; a length byte that
    happens to be printable must not become part of the text.
    """
    found: list[str] = []
    for match in re.finditer(rb"\x01(..)", content, re.DOTALL):
        length = int.from_bytes(match.group(1), "big")
        text = content[match.end() : match.end() + length]
        if len(text) == length and _PRINTABLE.fullmatch(text) and not text.startswith(b"-L"):
            found.append(text.decode("ascii"))
    return tuple(dict.fromkeys(option for option in found if not is_unwanted(option)))


def is_unwanted(option: str) -> bool:
    """Whether Spark asks for this JVM option although its JVMs are better off without it."""
    return option == _UNWANTED


@functools.cache
def class_path_fingerprint() -> str:
    """Changes whenever a jar of the class path does: 16 hexadecimal digits."""
    digest = hashlib.sha256()
    for jar in sorted((spark_home() / "jars").glob("*.jar")):
        status = jar.stat()
        digest.update(f"{jar}:{status.st_size}:{int(status.st_mtime)}\n".encode())
    return digest.hexdigest()[:16]

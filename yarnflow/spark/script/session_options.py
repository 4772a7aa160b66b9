"""What a script's session builder asks for beyond the driver's session.

A script sets ``spark.jars.packages`` or ``spark.sql.extensions`` before it asks for its session, which is
there already.  Jars are brought then, unless the submit has found them in the script's text; extensions are
read when a session is made, so another one takes the place of the driver's.  What Spark can change in a
session that runs, it changes itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from yarnflow.core.jars.request import jars_of, merged
from yarnflow.spark.jars.driver_jars import DriverJars

_EXTENSIONS: Final = "spark.sql.extensions"
_SHUFFLE_PARTITIONS: Final = "spark.sql.shuffle.partitions"


class SessionOptions:
    """Those of one script.

    Parameters
    ----------
    spark : SparkSession
        The driver's session.
    jars : DriverJars
        Brings what is asked for.
    options : mapping
        Spark's, as the job has them; what was brought is noted among them.
    """

    def __init__(self, spark: Any, jars: DriverJars, options: Mapping[str, str]) -> None:
        self._spark = spark
        self._jars = jars
        self._options = dict(options)

    def prepare(self, asked: Mapping[str, object]) -> None:
        """Do what has to be done before a builder gives the session out.

        Parameters
        ----------
        asked : mapping
            The builder's options.

        Raises
        ------
        JarError
            A jar or package cannot be had.
        """
        texts = {key: str(value) for key, value in asked.items()}
        self._bring_jars(texts)
        self._extend(texts.get(_EXTENSIONS, ""))

    def _bring_jars(self, asked: Mapping[str, str]) -> None:
        there = set(jars_of(self._options))
        self._options = self._jars.bring(merged(self._options, asked))
        for jar in jars_of(self._options):
            if jar not in there:
                self._spark.sparkContext._jsc.sc().addJar(jar)

    def _extend(self, asked: str) -> None:
        from pyspark.sql import SparkSession

        if not asked:
            return
        context = self._spark.sparkContext
        conf = context._jsc.sc().conf()
        present = _classes(conf.get(_EXTENSIONS, ""))
        wanted = list(dict.fromkeys((*present, *_classes(asked))))
        if wanted == present:
            return
        conf.set(_EXTENSIONS, ",".join(wanted))
        module = SparkSession._get_j_spark_session_module(context._jvm)
        module.clearDefaultSession()
        module.clearActiveSession()
        # it becomes the default and the active one, as the driver's was
        SparkSession._instantiatedSession = None
        made = SparkSession(context)
        made.conf.set(_SHUFFLE_PARTITIONS, self._spark.conf.get(_SHUFFLE_PARTITIONS))


def _classes(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]

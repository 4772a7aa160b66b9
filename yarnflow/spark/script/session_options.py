"""Options that a script asks of its context and session beyond what the driver's have.

A script sets ``spark.jars.packages``, ``spark.sql.extensions`` or ``spark.sql.warehouse.dir`` before it asks
for its context or session, which are there already.  Jars are brought then, unless the submit has found them
in the script's text.  Extensions and the warehouse are read when a session is made, so another one takes the
place of the driver's.  What Spark can change in a session that runs, it changes itself for a builder; for a
``SparkContext`` that is done here.  The log names what has no effect, as the driver and its executors run.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final, Protocol

from yarnflow.core.jars.request import jars_of, merged
from yarnflow.spark.hadoop_files import HadoopFiles
from yarnflow.spark.jars.driver_jars import DriverJars
from yarnflow.spark.java_classes import java_class
from yarnflow.spark.launch.session import PROTECTED_OPTIONS

logger = logging.getLogger(__name__)

_EXTENSIONS: Final = "spark.sql.extensions"
_WAREHOUSE: Final = "spark.sql.warehouse.dir"
_SHUFFLE_PARTITIONS: Final = "spark.sql.shuffle.partitions"
_APP_NAME: Final = "spark.app.name"
_HADOOP: Final = "spark.hadoop."
_JARS: Final = "spark.jars"
_EXECUTOR_ENVIRONMENT: Final = "spark.executorEnv."
#: of managers of clusters that are not there; Spark does not know these options, nor all that are protected
_OTHER_MASTERS: Final = ("spark.yarn.", "spark.kubernetes.")
#: Spark's registries of the options it knows; the second one is a Scala object
_ENTRIES: Final = "org.apache.spark.internal.config.ConfigEntry"
_SQL_ENTRIES: Final = "org.apache.spark.sql.internal.SQLConf$"


class Preparation(Protocol):
    """Does what a script asks for before it is given a context or a session."""

    def prepare(self, asked: Mapping[str, object]) -> None:
        """Do it for the options of a session builder."""

    def prepare_context(self, asked: Mapping[str, object], is_new: bool = True) -> None:
        """Do it for the options of a ``SparkContext``; those of one that is not new may have no effect."""


class NoPreparation:
    """Everything is as the driver has it."""

    def prepare(self, asked: Mapping[str, object]) -> None:
        """Do nothing."""

    def prepare_context(self, asked: Mapping[str, object], is_new: bool = True) -> None:
        """Do nothing."""


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
        self._has_context = False
        self._has_session = False

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
        # as in Spark, one is shared by all sessions
        may_move, self._has_session = not self._has_session, True
        if not self._has_context:
            # a builder makes the context with its options where there is none
            self.prepare_context(asked)
            return
        texts = {key: str(value) for key, value in asked.items()}
        self._bring_jars(texts)
        self._renew_session(texts.get(_EXTENSIONS, ""), texts.get(_WAREHOUSE, "") if may_move else "")

    def prepare_context(self, asked: Mapping[str, object], is_new: bool = True) -> None:
        """Do what has to be done before a script gets the context.

        Parameters
        ----------
        asked : mapping
            The options of its ``SparkConf``, and the name it gives.
        is_new : bool
            The script makes one.  Otherwise it takes the one there is, for which options count only if it has
            not had any before, as in ``SparkContext.getOrCreate``.

        Raises
        ------
        JarError
            A jar or package cannot be had.
        """
        if self._has_context and not is_new:
            return
        self._has_context = True
        texts = {key: str(value) for key, value in asked.items()}
        self._bring_jars(texts)
        context = self._spark.sparkContext
        conf = context._jsc.sc().conf()
        changed = {
            key: value
            for key, value in texts.items()
            if not _is_brought(key) and conf.get(key, "") != value and not self._is_too_late(key)
        }
        for key, value in changed.items():
            conf.set(key, value)
            if key.startswith(_HADOOP):
                context._jsc.hadoopConfiguration().set(key.removeprefix(_HADOOP), value)
            elif key.startswith(_EXECUTOR_ENVIRONMENT):
                # of Python's workers
                context.environment[key.removeprefix(_EXECUTOR_ENVIRONMENT)] = value
        if _APP_NAME in texts:
            context.appName = texts[_APP_NAME]
        self._renew_session(texts.get(_EXTENSIONS, ""), changed.get(_WAREHOUSE, ""))
        self._change_session(changed)

    def _is_too_late(self, key: str) -> bool:
        """Return whether nothing can change it any more; that is told."""
        if key in (_APP_NAME, _WAREHOUSE) or key.startswith((_HADOOP, _EXECUTOR_ENVIRONMENT)):
            return False
        gateway = self._spark.sparkContext._gateway
        sql = getattr(java_class(gateway, _SQL_ENTRIES), "MODULE$")
        if sql.containsConfigKey(key):
            # static ones were read when the session was made
            is_late = bool(sql.isStaticConfigKey(key))
        else:
            entries = java_class(gateway, _ENTRIES)
            is_theirs = key in PROTECTED_OPTIONS or key.startswith(_OTHER_MASTERS)
            is_late = is_theirs or entries.findEntry(key) is not None
        if is_late:
            advice = PROTECTED_OPTIONS.get(key, f"set it when the job is submitted: -D{key}=…")
            # its value may be a secret
            logger.warning("%s has no effect in the script, whose driver runs already; %s", key, advice)
        return is_late

    def _bring_jars(self, asked: Mapping[str, str]) -> None:
        there = set(jars_of(self._options))
        self._options = self._jars.bring(merged(self._options, asked))
        for jar in jars_of(self._options):
            if jar not in there:
                self._spark.sparkContext._jsc.sc().addJar(jar)

    def _change_session(self, changed: Mapping[str, str]) -> None:
        """Give the session what it would have begun with."""
        from pyspark.sql import SparkSession

        if changed:
            jvm = self._spark.sparkContext._jvm
            session = SparkSession._get_j_spark_session_class(jvm).getDefaultSession().get()
            # a session has those of its context that are not of SQL, too
            SparkSession._get_j_spark_session_module(jvm).applyModifiableSettings(session, dict(changed))

    def _renew_session(self, extensions: str, warehouse: str) -> None:
        """Put a session with these in the place of the driver's, if it has others; empty = as it is."""
        from pyspark.sql import SparkSession

        context = self._spark.sparkContext
        conf = context._jsc.sc().conf()
        present = _classes(conf.get(_EXTENSIONS, ""))
        wanted = list(dict.fromkeys((*present, *_classes(extensions))))
        if wanted == present and not warehouse:
            return
        if wanted:
            conf.set(_EXTENSIONS, ",".join(wanted))
        if warehouse:
            warehouse = HadoopFiles(self._spark).named(warehouse)
            conf.set(_WAREHOUSE, warehouse)
        module = SparkSession._get_j_spark_session_module(context._jvm)
        module.clearDefaultSession()
        module.clearActiveSession()
        # it becomes the default and the active one, as the driver's was
        SparkSession._instantiatedSession = None
        made = SparkSession(context, options={_WAREHOUSE: warehouse} if warehouse else {})
        made.conf.set(_SHUFFLE_PARTITIONS, self._spark.conf.get(_SHUFFLE_PARTITIONS))


def _is_brought(key: str) -> bool:
    """Return whether something is done for an option besides setting it."""
    return key == _EXTENSIONS or key.startswith(_JARS)


def _classes(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]

"""All options, each declared once as a constant of a module here.

Nothing else in the code names a key as text.
"""

from __future__ import annotations

import re
from typing import Final

from yarnflow.config.option import AnyOption, ConfigOption
from yarnflow.config.options import (
    client,
    cluster,
    ha,
    history,
    job,
    memory,
    metrics,
    python,
    rest,
    security,
    yarn,
)

#: section title → options in order of declaration; the order of the generated documents
SECTIONS: Final[dict[str, tuple[AnyOption, ...]]] = {
    title: tuple(value for value in vars(module).values() if isinstance(value, ConfigOption))
    for title, module in (
        ("Cluster", cluster),
        ("REST interface and dashboard", rest),
        ("Memory", memory),
        ("Job", job),
        ("High availability", ha),
        ("Metrics and alerts", metrics),
        ("History", history),
        ("YARN", yarn),
        ("Client", client),
        ("Python and JVM", python),
        ("Security", security),
    )
}
ALL_OPTIONS: Final[tuple[AnyOption, ...]] = tuple(
    option for options in SECTIONS.values() for option in options
)
#: key, deprecated ones included → option
OPTIONS_BY_KEY: Final[dict[str, AnyOption]] = {
    key: option for option in ALL_OPTIONS for key in (option.key, *option.deprecated_keys)
}
#: keys that begin so are Spark's, and handed on unchanged
PASSED_THROUGH: Final = ("spark.",)
#: keys that begin so name a variable in the environment of containers on YARN: of the master with its
#: drivers, and of TaskManagers
MASTER_ENVIRONMENT: Final = "containerized.master.env."
TASKMANAGER_ENVIRONMENT: Final = "containerized.taskmanager.env."
#: all beginnings of keys that are no options of their own
FREE_KEYS: Final = (*PASSED_THROUGH, MASTER_ENVIRONMENT, TASKMANAGER_ENVIRONMENT)
#: options of metric reporters, whose names are the user's; see ``metrics.reporters``
REPORTER_OPTION: Final = re.compile(
    r"metrics\.reporter\.(?P<name>[\w-]+)\.(?P<option>factory\.class|host|port|interval|exporter\.endpoint"
    r"|service\.name|service\.version|filter\.includes|filter\.excludes|scope\.variables\.excludes"
    r"|scope\.variables\.additional)"
)

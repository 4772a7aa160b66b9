"""The rules of the package: which package, room and library may be imported by which, and who may unpickle.

Tables only; ``test_architecture.py`` says what they mean, and checks them.
"""

from __future__ import annotations

FOUNDATION = {"", "errors", "config", "core", "graph", "operators"}
ADAPTERS = {
    *("runtime", "rpc", "process", "spark", "api", "fs", "yarn", "staging", "rest", "ha", "metrics"),
}
#: package → packages it may import besides itself; ``""`` is the root package, which has the version only
ALLOWED: dict[str, set[str]] = {
    "": set(),
    "errors": set(),
    "config": {"", "errors"},
    "core": {"", "errors", "config"},
    "graph": {"", "errors", "config", "core"},
    "operators": {"", "errors", "config", "core", "graph"},
    **dict.fromkeys(ADAPTERS, FOUNDATION),
    "client": FOUNDATION | ADAPTERS,
    "entrypoint": FOUNDATION | ADAPTERS,
    "cli": FOUNDATION | ADAPTERS | {"client", "entrypoint"},
    "__main__": {"cli"},
    "airflow": {"", "errors", "config", "core", "process"},
    "testing": FOUNDATION | ADAPTERS | {"client", "entrypoint", "cli"},
}

#: room → rooms of the same package it may import besides itself; a package's own folder has its name
ROOMS: dict[str, set[str]] = {
    "airflow": {"airflow.hooks", "airflow.triggers"},
    "airflow.hooks": set(),
    "airflow.jobs": {"airflow.hooks"},
    "airflow.operators": {"airflow", "airflow.hooks", "airflow.jobs", "airflow.triggers"},
    "airflow.sensors": {"airflow", "airflow.hooks"},
    "airflow.triggers": {"airflow.hooks", "airflow.jobs"},
    "api": {"api.common", "api.datastream", "api.datastream.connectors"},
    "api.building": {"api", "api.common"},
    "api.common": {"api", "api.building", "api.datastream.formats"},
    "api.datastream": {
        *("api", "api.building", "api.common", "api.datastream.connectors", "api.datastream.formats"),
        "api.streams",
    },
    "api.datastream.connectors": {"api", "api.building", "api.common", "api.datastream.connectors.files"},
    "api.datastream.connectors.files": {"api", "api.building", "api.common", "api.datastream.connectors"},
    "api.datastream.formats": {
        *("api.common", "api.datastream", "api.datastream.connectors.files", "api.table"),
    },
    "api.metrics": set(),
    "api.streams": {"api", "api.building", "api.common", "api.datastream", "api.datastream.connectors"},
    "api.table": set(),
    "api.util": set(),
    "cli": {"cli.flags"},
    "cli.flags": set(),
    "client": {"client.jars", "client.programs", "client.yarn"},
    "client.diagnose": {"client", "client.environment", "client.yarn"},
    "client.discovery": {"client", "client.yarn"},
    "client.drill": {"client"},
    "client.environment": {"client.yarn"},
    "client.jars": set(),
    "client.programs": set(),
    "client.yarn": {"client", "client.environment", "client.programs"},
    "config": {"config.hadoop", "config.options"},
    "config.hadoop": set(),
    "config.options": {"config"},
    "core": {
        *("core.checkpoint", "core.collect", "core.ha", "core.job", "core.job_run", "core.resources"),
        "core.monitoring",
    },
    "core.checkpoint": {"core"},
    "core.collect": {"core"},
    "core.ha": {"core", "core.checkpoint"},
    "core.jars": {"core"},
    "core.job": {"core", "core.checkpoint"},
    "core.job_run": {"core", "core.checkpoint", "core.job", "core.resources"},
    "core.monitoring": {"core", "core.checkpoint"},
    "core.resources": {"core"},
    "entrypoint": set(),
    "entrypoint.driver": {"entrypoint"},
    "entrypoint.master": {"entrypoint", "entrypoint.master.web"},
    "entrypoint.master.web": {"entrypoint"},
    "entrypoint.standalone": {"entrypoint"},
    "entrypoint.taskmanager": {"entrypoint"},
    "entrypoint.yarn": {"entrypoint", "entrypoint.taskmanager"},
    "graph": {"graph.connectors"},
    "graph.connectors": {"graph"},
    "graph.generation": {"graph", "graph.connectors", "graph.sql"},
    "graph.modes": {"graph", "graph.connectors"},
    "graph.sql": {"graph"},
    "graph.state": {"graph", "graph.connectors"},
    "ha": {"ha.stores"},
    "ha.stores": {"ha"},
    "metrics": {"metrics.reporters"},
    "metrics.reporters": {"metrics"},
    "operators": set(),
    "operators.databases": set(),
    "operators.functions": {"operators", "operators.state"},
    "operators.joins": {
        *("operators", "operators.functions", "operators.process", "operators.state"),
        "operators.windows.operator",
    },
    "operators.lookups": {"operators.functions", "operators.process"},
    "operators.process": {
        *("operators", "operators.functions", "operators.state", "operators.types", "operators.windows"),
    },
    "operators.state": {"operators", "operators.types"},
    "operators.state.backends": {"operators.state"},
    "operators.task": {
        *("operators", "operators.functions", "operators.process", "operators.state", "operators.types"),
    },
    "operators.windows": {"operators", "operators.state"},
    "operators.windows.operator": {
        *("operators", "operators.functions", "operators.process", "operators.state", "operators.windows"),
    },
    "operators.types": {"operators"},
    "process": {"process.channel", "process.output"},
    "process.channel": set(),
    "process.output": set(),
    "rest": {"rest.framework", "rest.handlers"},
    "rest.access": set(),
    "rest.answers": {"rest.framework"},
    "rest.framework": {"rest.access"},
    "rest.handlers": {"rest.answers", "rest.framework", "rest.programs"},
    "rest.programs": {"rest.framework"},
    "rest.history": {"rest", "rest.answers", "rest.framework", "rest.handlers"},
    "process.resources": set(),
    "runtime": set(),
    "runtime.dispatcher": {"runtime", "runtime.jobmaster"},
    "runtime.driver": {"runtime"},
    "runtime.jobmaster": {"runtime", "runtime.placement"},
    "runtime.placement": set(),
    "runtime.resourcemanager": {"runtime"},
    "runtime.taskexecutor": {"runtime"},
    "spark": set(),
    "spark.checkpoints": {
        *("spark", "spark.checkpoints.damage", "spark.connectors", "spark.progress", "spark.run"),
        *("spark.script", "spark.state", "spark.translate"),
    },
    "spark.checkpoints.damage": {"spark", "spark.checkpoints", "spark.state"},
    "spark.checkpoints.restoring": {
        *("spark", "spark.checkpoints", "spark.checkpoints.damage", "spark.connectors", "spark.elements"),
        *("spark.run", "spark.state", "spark.translate"),
    },
    "spark.connectors": {
        *("spark", "spark.checkpoints", "spark.connectors.elasticsearch", "spark.connectors.feeds"),
        *("spark.connectors.jdbc", "spark.connectors.kafka", "spark.connectors.python"),
        *("spark.connectors.rabbitmq", "spark.connectors.redis"),
        *("spark.messages", "spark.run", "spark.translate"),
    },
    "spark.connectors.elasticsearch": {"spark.checkpoints", "spark.connectors"},
    "spark.connectors.feeds": set(),
    "spark.connectors.jdbc": {"spark.connectors", "spark.translate"},
    "spark.connectors.kafka": {
        *("spark", "spark.checkpoints", "spark.connectors", "spark.messages"),
    },
    "spark.connectors.python": {
        *("spark", "spark.checkpoints", "spark.connectors", "spark.run", "spark.translate"),
    },
    "spark.connectors.rabbitmq": {"spark", "spark.checkpoints", "spark.connectors"},
    "spark.connectors.redis": {"spark.checkpoints", "spark.connectors"},
    "spark.elements": {"spark.messages", "spark.translate"},
    "spark.jars": {"spark", "spark.launch"},
    "spark.launch": {"spark", "spark.progress"},
    "spark.lookups": {"spark.connectors.jdbc", "spark.elements", "spark.translate"},
    "spark.messages": set(),
    "spark.metrics": {"spark", "spark.translate"},
    "spark.progress": {"spark"},
    "spark.run": {
        *("spark", "spark.checkpoints", "spark.checkpoints.damage", "spark.connectors", "spark.elements"),
        "spark.translate",
    },
    "spark.script": {
        *("spark", "spark.checkpoints", "spark.jars", "spark.launch", "spark.progress", "spark.run"),
    },
    "spark.state": {"spark", "spark.checkpoints", "spark.checkpoints.restoring", "spark.translate"},
    "spark.translate": {"spark", "spark.connectors", "spark.lookups", "spark.messages"},
    "testing": set(),
    "testing.gateways": set(),
    "testing.ha": {"testing"},
    "testing.outside": set(),
    "yarn": {"yarn.web"},
    "yarn.web": {"yarn"},
}

#: packages whose rooms still import each other in circles; those of ``api`` are PyFlink's
CIRCLES_OF_ROOMS = {"api", "client", "config", "core", "graph", "ha", "metrics", "spark", "yarn"}

#: room → rooms of other packages that may import it; rooms that are not named follow their package.
#: ``testing`` may import all.
SEEN_BY: dict[str, set[str]] = {
    **dict.fromkeys(  # noqa: RUF024
        (
            *("airflow", "airflow.hooks", "airflow.jobs", "airflow.operators", "airflow.sensors"),
            "airflow.triggers",
        ),
        set(),
    ),
    "client.diagnose": {"cli"},
    "client.discovery": {"cli"},
    "client.drill": {"cli"},
    "client.environment": {"cli"},
    "entrypoint": set(),
    "entrypoint.driver": set(),
    "entrypoint.master": set(),
    "entrypoint.master.web": set(),
    "entrypoint.standalone": {"cli"},
    "entrypoint.taskmanager": set(),
    "entrypoint.yarn": set(),
    "runtime.dispatcher": {"entrypoint.master", "entrypoint.master.web"},
    "runtime.driver": {"entrypoint.driver"},
    "runtime.jobmaster": {"entrypoint.master"},
    "runtime.placement": {"entrypoint.master"},
    "runtime.resourcemanager": {"entrypoint.master", "entrypoint.master.web"},
    "runtime.taskexecutor": {"entrypoint.taskmanager"},
    "spark": set(),
    "spark.checkpoints": {"entrypoint.driver"},
    "spark.checkpoints.restoring": {"entrypoint.driver"},
    "spark.connectors": set(),
    "spark.elements": {"entrypoint.driver"},
    "spark.jars": {"client.jars", "entrypoint.driver"},
    "spark.lookups": set(),
    "spark.messages": set(),
    "spark.progress": {"entrypoint.driver"},
    "spark.run": {"entrypoint.driver"},
    "spark.script": {"entrypoint.driver"},
    "spark.state": {"cli"},
    "spark.translate": set(),
    "rest": {"entrypoint.master.web"},
    "rest.access": {"cli", "client", "entrypoint.master", "entrypoint.master.web", "entrypoint.standalone"},
    "rest.answers": {"entrypoint.master.web"},
    "rest.framework": {"entrypoint.master", "entrypoint.master.web", "entrypoint.standalone"},
    "rest.handlers": {"entrypoint.master.web"},
    "rest.history": {"entrypoint.master.web", "entrypoint.standalone"},
    "metrics": {"entrypoint.master"},
    "metrics.reporters": set(),
    "spark.metrics": {"entrypoint.driver"},
}

#: third-party library → packages, rooms or modules that may import it
LIBRARIES: dict[str, set[str]] = {
    "airflow": {"airflow"},
    "httpx": {"airflow.hooks.rest"},
    "thrift": {"rpc"},
    "msgspec": {"core.json_codec", "rest"},
    "pyspark": {"spark"},
    "py4j": {
        *("spark.checkpoints.file_copy", "spark.hadoop_files", "spark.java_classes"),
        "spark.launch.callback_server",
    },
    "pyarrow": {
        *("api.building.collection", "spark.connectors", "spark.elements", "spark.messages"),
        *("spark.connectors.elasticsearch", "spark.connectors.feeds", "spark.connectors.jdbc"),
        *("spark.connectors.kafka", "spark.connectors.python", "spark.connectors.rabbitmq"),
        *("spark.connectors.redis", "spark.lookups", "spark.run.rehearsal", "spark.translate"),
    },
    "confluent_kafka": {"spark.connectors.kafka.producer"},
    "fastavro": {"spark.messages.avro_format"},
    "pandas": {"spark.run.rehearsal"},
    "numpy": {"operators.task.key_groups", "operators.task.packing", "operators.types.columns"},
    "opensearchpy": {"spark.connectors.elasticsearch.client"},
    "opentelemetry": {"metrics.reporters.otel"},
    "prometheus_client": {"metrics.reporters.prometheus"},
    "pika": {"spark.connectors.rabbitmq.broker"},
    "redis": {"spark.connectors.redis.store"},
    "psycopg": {"spark.connectors.jdbc.connections"},
    "pymysql": {"spark.connectors.jdbc.connections"},
    "click": {"cli"},
    "rich": {"cli.view"},
    "yaml": {"config"},
    "skein": {"yarn.library", "client.diagnose.yarn_checks"},
    "cryptography": {"yarn.credentials"},
    "starlette": {"rest"},
    "uvicorn": {"rest.framework.server"},
    "h11": {"rest.framework.proxy"},
    "hdfs": {"fs.webhdfs"},
    "kazoo": {"ha"},
    "requests": {"fs", "yarn.web.http"},
    "urllib3": {"spark.connectors.elasticsearch.client"},
    "venv_pack": {"client.environment.pack"},
    "conda_pack": {"client.environment.pack"},
    "cloudpickle": {"graph.closures"},
    "sqlglot": {"graph.sql"},
}

#: (module, module of ours it names in a string although it may not import it) → why
BY_NAME: dict[tuple[str, str], str] = {
    **{
        ("airflow.get_provider_info", f"airflow.{module}"): "Airflow imports it, by this name"
        for module in (
            *("operators.submit", "operators.stop", "operators.savepoint", "operators.restart"),
            *("operators.drill", "sensors.job"),
        )
    },
    ("airflow.hooks.command", "cli"): "a command line",
    ("graph.import_finder", "api"): "what programs of PyFlink import",
    ("config.log_file", "process.logs"): "logging loads its formatter by name, in processes that have it",
    ("client.yarn.specification", "entrypoint.yarn.driver_main"): "a command line in a container",
    ("client.yarn.specification", "entrypoint.yarn.master_main"): "a command line in a container",
    ("client.yarn.specification", "entrypoint.yarn.taskmanager_main"): "a command line in a container",
    ("client.diagnose.container_check", "entrypoint.yarn.container_probe"): "a container's command line",
    ("entrypoint.client_program", "cli"): "a command line: the program is submitted as a user's",
    ("process.commands", "entrypoint.master.main"): "the processes of a cluster, started by name",
    ("process.commands", "entrypoint.taskmanager.main"): "the processes of a cluster, started by name",
    ("process.commands", "entrypoint.driver.main"): "the processes of a cluster, started by name",
}

#: module that makes names of modules at run time → what the names come from
COMPUTED: dict[str, str] = {
    "api.documents": "PyFlink's names of modules",
    "api.reference": "a table of modules",
    "graph.import_finder": "PyFlink's names of modules",
    "cli.documents": "the table of verbs",
    "cli.main": "the table of verbs",
    "entrypoint.yarn.container_probe": "a table of libraries",
    "entrypoint.yarn.driver_main": "its own name",
    "entrypoint.yarn.taskmanager_main": "its own name",
    "process.commands": "completed in its own calls of _module()",
    "spark.launch.worker_daemon": "a table of libraries",
}
#: dotted strings of ours that name no module
NO_MODULES = {
    *("yarnflow.executors", "yarnflow.jobmanager", "yarnflow.job.id"),
    *("yarnflow.log.dir", "yarnflow.log.config-file", "yarnflow.log.format"),
    "yarnflow.log.retained-processes",
}

#: modules a folder may have; more than a dozen are hard to survey
FOLDER_LIMIT = 14
#: larger on purpose: folder → (its own limit, why)
LARGE_FOLDERS: dict[str, tuple[int, str]] = {
    "api.common": (19, "PyFlink's modules"),
    "api.datastream": (21, "PyFlink's modules"),
    "api.datastream.connectors": (15, "PyFlink's modules"),
    "cli": (39, "one module per verb"),
    "core": (15, "what all packages share; each module is one small thing"),
    "graph": (15, "one model; each module is one part of it"),
    "ha": (15, "all parts of one process's ZooKeeper session"),
}
#: packages whose ``__init__`` holds more than words
INIT_WITH_CODE = {
    "": "version",
    "config.options": "all options",
    **dict.fromkeys(
        ("api", "api.common", "api.datastream", "api.datastream.connectors", "api.metrics", "api.table"),
        "the names users import",
    ),
}

#: ``core``, ``graph`` and ``operators`` are pure: time, ids and randomness arrive as arguments
IMPURE = {
    "time", "random", "os", "socket", "threading", "asyncio", "subprocess", "uuid", "logging",
}  # fmt: skip

#: module → what it may import all the same
IMPURE_ALL_THE_SAME = {"core.json_codec": {"threading": "msgspec is not safe at the first use of a class"}}

#: modules that unpickle → whose pickles these are, and who vouches for them; what runs code is never read
#: from where others could have written it without a digest, a seal or an owner that was looked at
UNPICKLES: dict[str, str] = {
    "graph.closures": "the program's functions, from the job's graph: by an authenticated wire, or a body "
    "whose pointer has its digest",
    "operators.state.backends.missing_classes": "state in a worker, in the job's own directory: looked at "
    "when it was brought there (spark.checkpoints.restoring.restore)",
    "spark.elements.worker_runs": "likewise, and elements between the tasks of a query",
    "spark.elements.element_frames": "elements of the graph, and those between the tasks of a query",
    "spark.translate.stateful": "accumulators in the job's own directory: looked at when they were brought",
    "spark.translate.python_chain": "what spark.translate.stateful has written in the same query",
    "spark.messages.sink_rows": "elements between the tasks of a query",
    "spark.connectors.python.sink": "what tasks of the same batch return",
    "spark.connectors.python.source": "readers and partitions that the driver of the query has made",
    "spark.state.plain_pickle": "anybody's: it makes plain values only, and runs nothing",
    "client.collecting": "elements that the driver has sealed (core.collect.parts)",
}

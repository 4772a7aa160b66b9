"""The import rules of the package, checked on its syntax trees; nothing is imported.

``errors ← config ← core ← graph ← operators ← {runtime, rpc, process, spark, api, fs, yarn, staging, rest,
ha, metrics} ← {client, entrypoint} ← cli``; siblings in braces never import each other, ``testing`` may
import all and is imported by nobody.  ``airflow`` runs in processes of Airflow, starts the command and asks
by REST: it imports what those two need, and no more.  Imports inside functions and under
``TYPE_CHECKING`` count like others.

A *room* is a folder of a package.  Rooms see each other only as the table says, and some are seen from other
packages by few.  A string that names a module of ours is held to the same rules as an import of it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pytest

from tests.package_modules import GENERATED, MODULES

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
    **{adapter: FOUNDATION for adapter in ADAPTERS},
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
    "airflow.sensors": {"airflow.hooks"},
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
    "client": {"client.jars", "client.yarn"},
    "client.diagnose": {"client", "client.environment", "client.yarn"},
    "client.discovery": {"client", "client.yarn"},
    "client.drill": {"client"},
    "client.environment": {"client.yarn"},
    "client.jars": set(),
    "client.yarn": {"client", "client.environment"},
    "config": {"config.options"},
    "config.options": {"config"},
    "core": {
        *("core.checkpoint", "core.collect", "core.ha", "core.job", "core.job_run", "core.resources"),
        "core.monitoring",
    },
    "core.checkpoint": {"core"},
    "core.collect": {"core"},
    "core.ha": {"core", "core.checkpoint"},
    "core.jars": {"core"},
    "core.job": {"core"},
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
    "rest.answers": {"rest.framework"},
    "rest.framework": set(),
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
        *("spark", "spark.checkpoints.damage", "spark.connectors", "spark.run"),
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
    "spark.jars": {"spark.launch"},
    "spark.launch": {"spark.run"},
    "spark.lookups": {"spark.connectors.jdbc", "spark.elements", "spark.translate"},
    "spark.messages": set(),
    "spark.metrics": {"spark.translate"},
    "spark.run": {
        *("spark", "spark.checkpoints", "spark.checkpoints.damage", "spark.connectors", "spark.elements"),
        "spark.translate",
    },
    "spark.script": {"spark", "spark.checkpoints", "spark.jars", "spark.run"},
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
    **dict.fromkeys(
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
    "spark.run": {"entrypoint.driver"},
    "spark.script": {"entrypoint.driver"},
    "spark.state": {"cli"},
    "spark.translate": set(),
    "rest": {"entrypoint.master.web"},
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
    "py4j": {"spark.checkpoints.file_copy", "spark.hadoop_files", "spark.launch.jar_loader"},
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
    "cli": (38, "one module per verb"),
    "core": (15, "what all packages share; each module is one small thing"),
    "graph": (15, "one model; each module is one part of it"),
    "spark.run": (15, "one attempt of a job's queries; each module is one part of it"),
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


@dataclass(frozen=True)
class Import:
    """One import statement's target, as written."""

    module: str
    #: name after ``from module import``; empty for ``import module``
    name: str
    line: int
    relative: bool


@cache
def imports(module: str) -> tuple[Import, ...]:
    """All imports of a module, wherever they stand in it."""
    return tuple(imports_of(MODULES[module].read_text(encoding="utf-8")))


def imports_of(source: str) -> Iterator[Import]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, "", node.lineno, False)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield Import(node.module or "", alias.name, node.lineno, node.level > 0)


@dataclass(frozen=True)
class Named:
    """A module named by a string."""

    #: the string; empty = it is made at run time
    text: str
    line: int


@cache
def names(module: str) -> tuple[Named, ...]:
    """All strings of a module that name modules, as far as the source tells."""
    return tuple(names_of(MODULES[module].read_text(encoding="utf-8")))


_DOTTED = re.compile(r"yarnflow(\.[\w-]+)+(:\w+)?")
_LOADERS = ("import_module", "__import__")


def names_of(source: str) -> Iterator[Named]:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if _DOTTED.fullmatch(text):
                yield Named(text, node.lineno)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[argument, *_]):
                if name in _LOADERS and not _ours(argument):
                    yield Named(_text(argument), node.lineno)
                elif name == "_module" and _text(argument):
                    yield Named(f"yarnflow.entrypoint.{_text(argument)}", node.lineno)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for flag, value in zip(parts, parts[1:], strict=False):
                    if _text(flag) == "-m" and not _ours(value):
                        yield Named(_text(value), value.lineno)


def _text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _ours(node: ast.expr) -> bool:
    """Found already as a string of its own."""
    return _DOTTED.fullmatch(_text(node)) is not None


def named_module(text: str) -> str:
    """The module of ours a string names, itself or by a name in it; empty = none there is."""
    dotted = text.replace(":", ".")
    if dotted in MODULES:
        return dotted
    module, _, name = dotted.rpartition(".")
    if module not in MODULES:
        return ""
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    defined = {node.name for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    return module if name in defined else ""


def room(module: str) -> str:
    """``yarnflow.core.ha.lease`` → ``core.ha``; ``yarnflow.core.ids`` and ``yarnflow.core`` → ``core``."""
    short = module.partition(".")[2]
    if module.startswith(GENERATED):
        return "rpc"
    if module in MODULES and MODULES[module].name == "__init__.py":
        return short
    parent = short.rpartition(".")[0]
    return parent or short


def may_see(own: str, other: str) -> str:
    """Why a module may not import another one of ours; empty = it may."""
    mine, theirs = package(own), package(other)
    here, there = room(own), room(other)
    if mine != theirs:
        if theirs not in ALLOWED[mine]:
            return f"{mine or 'yarnflow'} may not import {theirs or 'yarnflow'}"
        if mine != "testing" and here not in SEEN_BY.get(there, {here}):
            return f"{there} is not seen by {here}"
    elif here != there and there not in ROOMS.get(here, set()):
        return f"room {here} may not import room {there}"
    return ""


def package(module: str) -> str:
    """``yarnflow.core.job.record`` → ``core``; the root package → empty."""
    return module.partition(".")[2].partition(".")[0]


def target(item: Import) -> str:
    """The module of ours an import reaches: ``from yarnflow.core import ids`` reaches ``core.ids``."""
    dotted = f"{item.module}.{item.name}"
    return dotted if dotted in MODULES else item.module


def violations(module: str) -> Iterator[str]:
    """Sentences about the imports of one module that break a rule."""
    own = package(module)
    for item in imports(module):
        top = item.module.partition(".")[0]
        where = f"{module}:{item.line}"
        if item.relative:
            yield f"{where}: relative import of {item.module or item.name}"
        elif top == "yarnflow":
            if why := may_see(module, target(item)):
                yield f"{where}: {why} ({item.module})"
        elif top in sys.stdlib_module_names:
            allowed = IMPURE_ALL_THE_SAME.get(module.removeprefix("yarnflow."), {})
            if own in ("core", "graph", "operators") and top in IMPURE and top not in allowed:
                yield f"{where}: {own} is pure and may not import {top}"
        elif why := no_library(module, top):
            yield f"{where}: {why}"
    for named in names(module):
        if why := no_name(module, named.text):
            yield f"{module}:{named.line}: {why}"


def no_library(module: str, top: str) -> str:
    """Why a module may not import a library; empty = it may."""
    if top not in LIBRARIES:
        return f"{top} is not a library of this project; add it to LIBRARIES and setup.cfg"
    if not {package(module), room(module), module.partition(".")[2]} & LIBRARIES[top]:
        return f"only {', '.join(sorted(LIBRARIES[top]))} may import {top}"
    return ""


def no_name(module: str, text: str) -> str:
    """Why a module may not name another one by a string; empty = it may."""
    short = module.partition(".")[2]
    if not text:
        return "" if short in COMPUTED else "names a module that is known at run time only; see COMPUTED"
    if text in NO_MODULES:
        return ""
    if not text.startswith("yarnflow."):
        top = text.partition(".")[0]
        return "" if top in sys.stdlib_module_names else no_library(module, top)
    found = named_module(text)
    if not found:
        return f"{text!r} names no module, nor anything in one"
    if (short, found.partition(".")[2]) in BY_NAME or found == module:
        return ""
    why = may_see(module, found)
    return f"{why} ({text!r}); see BY_NAME" if why else ""


def test_imports_follow_the_layers() -> None:
    assert not [said for module in MODULES for said in violations(module)]


def test_every_package_has_a_place_in_the_layers() -> None:
    assert {package(module) for module in MODULES} <= set(ALLOWED)


def test_rooms_are_those_there_are() -> None:
    rooms = {room(module) for module in MODULES}
    with_rooms = {name.partition(".")[0] for name in rooms if "." in name}
    assert {name for name in rooms if name.partition(".")[0] in with_rooms} == set(ROOMS)
    assert set(SEEN_BY) <= rooms


def test_rooms_are_allowed_no_more_than_they_need() -> None:
    used = {
        (room(module), room(reached))
        for module in MODULES
        for reached in (
            *(target(item) for item in imports(module)),
            *(named_module(named.text) for named in names(module)),
        )
        if reached.startswith("yarnflow.")
    }
    allowed = {(here, there) for here, others in ROOMS.items() for there in others}
    allowed |= {(here, there) for there, others in SEEN_BY.items() for here in others}
    assert sorted(allowed - used) == []


def test_exceptions_for_names_in_strings_are_needed() -> None:
    named = {
        (module.partition(".")[2], named_module(item.text).partition(".")[2])
        for module in MODULES
        for item in names(module)
    }
    assert sorted(set(BY_NAME) - named) == []
    assert sorted(pair for pair in BY_NAME if not may_see(*(f"yarnflow.{name}" for name in pair))) == []
    computed = {module.partition(".")[2] for module in MODULES for item in names(module) if not item.text}
    assert computed == set(COMPUTED)


def test_verbs_name_modules() -> None:
    tree = ast.parse(MODULES["yarnflow.cli.main"].read_text(encoding="utf-8"))
    (table,) = [
        node.value
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "VERBS"
    ]
    assert isinstance(table, ast.Dict) and table.values
    for value in table.values:
        assert isinstance(value, ast.Tuple) and f"yarnflow.cli.{_text(value.elts[0])}" in MODULES


def folder_sizes() -> dict[str, int]:
    """Folder → modules in it, without its ``__init__``."""
    sizes: dict[str, int] = {}
    for module, path in MODULES.items():
        if path.name != "__init__.py":
            sizes[room(module)] = sizes.get(room(module), 0) + 1
    return sizes


def too_large(sizes: dict[str, int]) -> list[str]:
    return [
        f"{folder} has {size} modules"
        for folder, size in sizes.items()
        if size > LARGE_FOLDERS.get(folder, (FOLDER_LIMIT, ""))[0]
    ]


def test_a_folder_can_be_surveyed() -> None:
    sizes = folder_sizes()
    assert too_large(sizes) == []
    assert [folder for folder in LARGE_FOLDERS if sizes.get(folder, 0) <= FOLDER_LIMIT] == []


def test_a_large_folder_is_found() -> None:
    assert too_large({"fs": FOLDER_LIMIT, "ha": FOLDER_LIMIT + 1}) == [f"ha has {FOLDER_LIMIT + 1} modules"]


def no_room_description(source: str) -> str:
    """What is wrong with an ``__init__`` of a room; empty = nothing."""
    tree = ast.parse(source)
    said = ast.get_docstring(tree) or ""
    if len([line for line in said.splitlines() if line.strip()]) < 2:
        return "says too little: what it holds, where it runs, what it never decides"
    return "holds more than words" if len(tree.body) > 1 else ""


def test_each_room_says_what_it_is() -> None:
    for module, path in MODULES.items():
        if path.name == "__init__.py" and module.partition(".")[2] not in INIT_WITH_CODE:
            assert not no_room_description(path.read_text(encoding="utf-8")), module


@pytest.mark.parametrize(
    "source, wrong",
    [
        ("", "too little"),
        ('"""One line."""', "too little"),
        ('"""What.\n\nWhere.\n"""\nimport os', "more than words"),
        ('"""What.\n\nWhere.\n"""', ""),
    ],
)
def test_a_room_without_a_description_is_found(source: str, wrong: str) -> None:
    found = no_room_description(source)
    assert wrong in found and bool(wrong) == bool(found)


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """Some cycle of a directed graph, first node repeated at the end; empty if there is none."""
    done: set[str] = set()
    path: list[str] = []

    def visit(node: str) -> list[str]:
        if node in path:
            return [*path[path.index(node) :], node]
        if node in done:
            return []
        path.append(node)
        for successor in sorted(graph.get(node, ())):
            if found := visit(successor):
                return found
        done.add(path.pop())
        return []

    for start in sorted(graph):
        if found := visit(start):
            return found
    return []


def test_no_module_imports_itself_through_others() -> None:
    graph = {name: {target(item) for item in imports(name)} & set(MODULES) for name in MODULES}
    assert cycle(graph) == []


def test_rooms_import_each_other_one_way() -> None:
    packages = {name.partition(".")[0] for name in ROOMS}
    with_circles = {
        name
        for name in packages
        if cycle({here: there for here, there in ROOMS.items() if here.partition(".")[0] == name})
    }
    assert with_circles == CIRCLES_OF_ROOMS


def test_cycles_are_found() -> None:
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


@pytest.mark.parametrize(
    "source, said",
    [
        ("from . import job", "relative import"),
        ("import threading", "is pure"),
        ("def late():\n    import pyspark.sql", "only spark may import pyspark"),
        ("from yarnflow.runtime import mailbox", "core may not import runtime"),
        ("if TYPE_CHECKING:\n    import yarnflow.cli", "core may not import cli"),
        ("import aiohttp", "not a library of this project"),
    ],
)
def test_a_bad_import_in_core_is_found(source: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_found("yarnflow.core.job.job", source, said, monkeypatch)


@pytest.mark.parametrize(
    "module, source, said",
    [
        ("runtime.taskexecutor.x", "import yarnflow.runtime.driver.driver", "may not import room"),
        ("rest.server", "from yarnflow.ha import client", "rest may not import ha"),
        ("entrypoint.driver.main", "import yarnflow.runtime.jobmaster.restore", "not seen by entrypoint"),
        ("cli.view", "import yarnflow.spark.run.progress", "spark.run is not seen by cli"),
        ("spark.run.progress", "import pandas", "only spark.run.rehearsal may import pandas"),
        ("core.job", "import_module('yarnflow.rpc.client')", "core may not import rpc"),
        ("core.job", "importlib.import_module('yarnflow.core.nothing')", "names no module"),
        ("core.job", "x = 'yarnflow.core.ids:nothing'", "names no module"),
        ("core.job", "x = 'yarnflow.fs.webhdfs:WebHdfsFileSystem'", "core may not import fs"),
        ("core.job", "__import__('yarnflow.rpc.client')", "core may not import rpc"),
        ("core.job", "x = (python, '-m', 'yarnflow.cli')", "core may not import cli"),
        ("core.job", "x = [python, '-m', name]", "known at run time only"),
        ("core.job", "import_module(name)", "known at run time only"),
        ("core.job", "import_module('skein')", "may import skein"),
        ("client.remote", "x = 'yarnflow.entrypoint.standalone.local:LocalCluster'", "not import entrypoint"),
        ("process.commands", "self._module('nobody.main')", "names no module"),
    ],
)
def test_a_bad_import_is_found(module: str, source: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_found(f"yarnflow.{module}", source, said, monkeypatch)


def test_words_and_keys_are_no_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    source = 'x = ("-m", "json.tool"), "yarnflow.log.dir", "see yarnflow.rpc.client"'
    monkeypatch.setattr(f"{__name__}.imports", lambda _: ())
    monkeypatch.setattr(f"{__name__}.names", lambda _: tuple(names_of(source)))
    assert [named.text for named in names("yarnflow.core.ids")] == ["json.tool", "yarnflow.log.dir"]
    assert list(violations("yarnflow.core.ids")) == []


def assert_found(module: str, source: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.imports", lambda _: tuple(imports_of(source)))
    monkeypatch.setattr(f"{__name__}.names", lambda _: tuple(names_of(source)))
    found = list(violations(module))
    assert len(found) == 1 and said in found[0]


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


def unpickles(source: str) -> bool:
    """Whether a module loads pickles; comparing or catching its errors is no such thing."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module in PICKLERS:
            if any(alias.name in LOADING for alias in node.names):
                return True
        if isinstance(node, ast.Attribute) and node.attr in LOADING and isinstance(node.value, ast.Name):
            if node.value.id in PICKLERS:
                return True
    return False


PICKLERS = ("pickle", "cloudpickle", "_pickle", "dill", "marshal", "shelve", "joblib")
LOADING = ("load", "loads", "Unpickler", "open")


def test_only_these_modules_unpickle() -> None:
    found = {
        name.partition(".")[2]
        for name, path in MODULES.items()
        if package(name) != "testing" and unpickles(path.read_text(encoding="utf-8"))
    }
    assert found == set(UNPICKLES)


@pytest.mark.parametrize(
    "source, found",
    [
        ("import pickle\npickle.loads(b'')", True),
        ("import pickle\nclass U(pickle.Unpickler): pass", True),
        ("from pickle import loads", True),
        ("import cloudpickle\nmap(cloudpickle.load, files)", True),
        ("import pickle\npickle.dumps(1)", False),
        ("import pickle\ntry: pass\nexcept pickle.UnpicklingError: pass", False),
        ("import json\njson.loads('')", False),
    ],
)
def test_who_unpickles_is_found(source: str, found: bool) -> None:
    assert unpickles(source) == found

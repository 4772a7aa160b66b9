"""What holds for the project as a whole: docstrings, sizes, versions, declared dependencies."""

from __future__ import annotations

import ast
import configparser
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path, PurePath

import pytest

import yarnflow
from tests.package_modules import MODULES, ROOT
from yarnflow.cli.info import program_plan
from yarnflow.config.configuration import Configuration

FOLDERS = (
    "yarnflow", "tests", "integration", "scripts", "docs", "conf", "examples", "thrift", ".ci",
)  # fmt: skip
SKIPPED = {"__pycache__", ".pytest_cache", ".mypy_cache", ".hypothesis"}
SCRIPTS = [path for path in sorted((ROOT / "scripts").iterdir()) if path.is_file()]
#: a module with more lines than this holds more than one idea
LINE_LIMIT = 800
#: one declaration after the other, and nothing else
DECLARATIONS = {"yarnflow.errors"}
#: what users import
FOR_USERS = ("yarnflow.testing.", "yarnflow.api.", "yarnflow.airflow.assets")
#: distribution → the module it is imported as, where the names differ
IMPORT_NAMES = {
    "apache-airflow": "airflow",
    "axe-playwright-python": "axe_playwright_python",
    "confluent-kafka": "confluent_kafka",
    "opensearch-py": "opensearchpy",
    "opentelemetry-sdk": "opentelemetry",
    "prometheus-client": "prometheus_client",
    "protobuf": "google",
    "pyyaml": "yaml",
    "venv-pack": "venv_pack",
}
#: needed by PySpark for what we ask of it, not imported by us
INDIRECT = {"protobuf", "pandas"}
#: come with a declared distribution: module → distribution
BUNDLED = {"py4j": "pyspark"}


def project_files() -> Iterator[Path]:
    """Every file of the project that somebody wrote or generated on purpose."""
    yield from (path for path in ROOT.iterdir() if path.is_file())
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and not SKIPPED & set(path.parts):
                yield path


def test_every_module_says_what_it_is() -> None:
    # an empty __init__.py only marks a folder
    sources = {module: path.read_text(encoding="utf-8") for module, path in MODULES.items()}
    assert not [
        module
        for module, source in sources.items()
        if source.strip() and not ast.get_docstring(ast.parse(source))
    ]


def test_no_module_is_too_long() -> None:
    assert not [
        module
        for module, path in MODULES.items()
        if module not in DECLARATIONS and len(path.read_text().splitlines()) > LINE_LIMIT
    ]


def mentions(source: str) -> set[str]:
    """Dotted names a module imports or, for what is started or loaded by name, spells out."""
    found = set()
    tree = ast.parse(source)
    constants = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    words = {value for value in constants if isinstance(value, str)}
    for word in words:
        if "\n" not in word:
            found |= set(re.findall(r"yarnflow(?:\.\w+)+", word))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.JoinedStr) and isinstance(prefix := node.values[0], ast.Constant):
            # f"yarnflow.cli.{verb}", the verbs in a table of the same module
            if isinstance(prefix.value, str) and re.fullmatch(r"yarnflow\.(\w+\.)+", prefix.value):
                found |= {f"{prefix.value}{word}" for word in words}
    return found


def test_no_module_is_dead() -> None:
    users = {module: path.read_text() for module, path in MODULES.items()}
    scripts = {path.name: path.read_text() for path in SCRIPTS}
    users |= {name: text for name, text in scripts.items() if "python" in text.partition("\n")[0]}
    used = {name for user, source in users.items() for name in mentions(source) if name != user}
    # entry points
    used |= set(re.findall(r"yarnflow(?:\.\w+)+", (ROOT / "setup.cfg").read_text()))
    # ``testing`` and PyFlink's modules are for users; packages, ``__main__`` and processes are reached by
    # their names
    dead = {
        module
        for module, path in MODULES.items()
        if module not in used
        and path.name not in ("__init__.py", "__main__.py")
        and not module.startswith(FOR_USERS)
        and not re.search(r"^if __name__ == ", path.read_text(), flags=re.MULTILINE)
    }
    assert not dead, f"imported by nothing: {', '.join(sorted(dead))}"


def test_version_belongs_to_the_changelog() -> None:
    first, *releases = re.findall(r"^## (.+)", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert first == "[Unreleased]"
    found = [re.fullmatch(r"\[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)", heading) for heading in releases]
    versions = [match[1] for match in found if match]
    assert len(versions) == len(releases), "each release has a version and a date"
    assert versions[0] == yarnflow.__version__


def test_version_is_declared_once() -> None:
    text = re.escape(yarnflow.__version__)
    places = [
        path.relative_to(ROOT).as_posix()
        for path in [*MODULES.values(), ROOT / "setup.cfg", ROOT / "setup.py"]
        if re.search(rf"version\w*\s*[:=].*{text}\b", path.read_text())
    ]
    assert places == ["yarnflow/__init__.py"]


def test_no_file_names_a_path_of_one_machine() -> None:
    own = [str(ROOT)] if len(ROOT.parts) > 2 else []
    home = [f"{Path.home()}/"] if len(Path.home().parts) > 1 else []
    paths = re.compile("|".join([r"(?<![\w.*])/(?:home|Users)/[a-z]\w*/", *map(re.escape, own + home)]))
    found = []
    for path in project_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [
            f"{path.relative_to(ROOT)}:{number}"
            for number, line in enumerate(text.splitlines(), 1)
            if paths.search(line)
        ]
    assert not found


def declared() -> dict[str, set[str]]:
    """Distributions of setup.cfg: ``""`` → what is always installed, extra → its own."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    texts = {"": parser["options"]["install_requires"], **parser["options.extras_require"]}
    return {
        extra: {re.split(r"[<>=!~\[; ]", line)[0].lower() for line in text.split("\n") if line.strip("# ")}
        for extra, text in texts.items()
    }


def test_every_library_is_declared_and_every_declared_one_is_needed() -> None:
    imported = {
        name.partition(".")[0] for path in MODULES.values() for name in mentions(path.read_text()) if name
    }
    required = declared()[""]
    names = {IMPORT_NAMES.get(distribution, distribution): distribution for distribution in required}
    foreign = imported - sys.stdlib_module_names - {"yarnflow", *BUNDLED} - set(names)
    # an extra's library may be imported where its absence is handled
    foreign -= {IMPORT_NAMES.get(name, name) for extra in declared().values() for name in extra}
    assert not foreign, "imported but not in setup.cfg"
    assert not {names[name] for name in names if name not in imported} - INDIRECT, "declared but not imported"


def test_unit_tests_import_nothing_of_the_extra_integration() -> None:
    heavy = {IMPORT_NAMES.get(name, name) for name in declared()["integration"]}
    found = [
        f"{path.relative_to(ROOT)}: {', '.join(sorted(names))}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        # skipped where Airflow is missing
        if not path.is_relative_to(ROOT / "tests" / "airflow")
        and (names := heavy & {name.partition(".")[0] for name in mentions(path.read_text())})
    ]
    assert not found


def test_every_resource_is_packaged() -> None:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    patterns = {package: text.split() for package, text in parser["options.package_data"].items()}
    left_out = []
    for path in (ROOT / "yarnflow").rglob("*"):
        if not path.is_file() or path.suffix in (".py", ".pyc"):
            continue
        folder = next(parent for parent in path.parents if (parent / "__init__.py").is_file())
        package = ".".join(folder.relative_to(ROOT).parts)
        # a pattern begins in the folder of its package
        place = PurePath("/", path.relative_to(folder))
        wanted = [*patterns["*"], *patterns.get(package, ())]
        if not any(place.match(f"/{pattern}") for pattern in wanted):
            left_out.append(path.relative_to(ROOT).as_posix())
    assert not left_out


@pytest.mark.parametrize("path", [*SCRIPTS, ROOT / ".ci" / "run"], ids=lambda path: path.name)
def test_scripts_can_be_run(path: Path) -> None:
    assert path.stat().st_mode & 0o111, f"{path.name} is not executable"
    assert path.read_text().startswith("#!"), f"{path.name} has no interpreter line"


@pytest.mark.parametrize(
    "files, said",
    [
        ({}, "No cluster of this user was started by start-cluster.sh"),
        # no process has such a number
        ({"taskmanager-1.pid": "4194305"}, "taskmanager-1 was not running"),
    ],
)
def test_stopping_what_does_not_run_says_so(tmp_path: Path, files: dict[str, str], said: str) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    environment = {**os.environ, "YARNFLOW_PID_DIR": str(tmp_path)}
    done = subprocess.run([ROOT / "scripts/stop-cluster.sh"], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "") and said in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_started_cluster_says_where_to_submit(tmp_path: Path) -> None:
    """Its port may be an option of the command, which no other command knows."""
    python = tmp_path / "python"
    told = "JobManager serves at localhost:7000 (pid $$); logs: /logs"
    # what starts it is Python all the same
    starter = f'case "$*" in *standalone.background*) exec {sys.executable} "$@";; esac'
    python.write_text(f'#!/bin/sh\n{starter}\necho "{told}"\nexec sleep 300\n')
    python.chmod(0o755)
    own = {"YARNFLOW_PID_DIR": str(tmp_path / "pids"), "YARNFLOW_PYTHON": str(python)}
    command = [str(ROOT / "scripts/start-cluster.sh"), "0", "-Djobmanager.rpc.port=7000"]
    done = subprocess.run(command, env={**os.environ, **own}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    os.kill(int((tmp_path / "pids/jobmanager.pid").read_text().split()[0]), signal.SIGKILL)
    assert "yarnflow submit -m localhost:7000 PROGRAM" in done.stdout


@pytest.mark.parametrize("number, name", [(0, "counts"), (1, "word count")])
def test_programs_of_the_readme_are_jobs(number: int, name: str, tmp_path: Path) -> None:
    sources = re.findall(r"```python\n(.+?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert len(sources) == 2
    program = tmp_path / "words.py"
    program.write_text(sources[number])
    assert f'"name": "{name}"' in program_plan(str(program), (), Configuration.empty())


def test_links_between_documents_lead_somewhere() -> None:
    broken = []
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", document.read_text()):
            if "://" not in link and not (document.parent / link).exists():
                broken.append(f"{document.relative_to(ROOT)}: {link}")
    assert not broken


def test_integration_tests_are_collected() -> None:
    """A test that uses what others share, and does not say so, would end all workers at once."""
    missing = [name for name in declared()["integration"] if not find_spec(IMPORT_NAMES.get(name, name))]
    if missing:
        pytest.skip(f"the extra integration is not installed: no {', '.join(sorted(missing))}")
    command = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "integration"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr or found.stdout[-2000:]

"""No process of yarnflow's loads modules of the folder in which a command was typed."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.package_modules import MODULES, ROOT
from yarnflow.client.yarn.specification import container_script
from yarnflow.entrypoint.client_program import client_command
from yarnflow.process.commands import ProcessCommands, module_command

#: of an interpreter that does not look into the current folder
_SAFE = ("-P", "-I")
#: ``-m`` of an interpreter in the text of a shell
_IN_SHELL = re.compile(r"""(\S+) -m ("\$\w+"|\{\w+\}|yarnflow[.\w]*)""")


def _unsafe_commands(source: str) -> Iterator[str]:
    """Command lines in Python code, and texts for a shell, with an interpreter that looks there."""
    tree = ast.parse(source)
    documented = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for program, flag in itertools.pairwise(parts):
                    text = ast.unparse(program)
                    is_module = isinstance(flag, ast.Constant) and flag.value == "-m"
                    starts = "sys.executable" in text and not _is_text(flag, _SAFE)
                    if starts or (is_module and not _is_text(program, _SAFE)):
                        yield ast.unparse(node)
            case ast.Constant(value=str()) | ast.JoinedStr() if id(node) not in documented:
                yield from _unsafe_in_shell(ast.unparse(node))


def _is_text(node: ast.expr, texts: tuple[str, ...]) -> bool:
    return isinstance(node, ast.Constant) and node.value in texts


def _unsafe_in_shell(text: str) -> Iterator[str]:
    return (found[0] for found in _IN_SHELL.finditer(text) if found[1] not in _SAFE)


@pytest.mark.parametrize("python", ["", "/env/bin/python"])
def test_processes_do_not_look_into_the_current_folder(python: str) -> None:
    places = ProcessCommands(Path("/c"), Path("/c/conf.json"), Path("/c/secret"), python)
    for command in (
        places.job_manager(3),
        places.task_manager("tm"),
        places.driver(100, Path("/log"), Path("/scratch")),
        client_command("submit", Path("/options"), "job.py"),
        module_command("yarnflow.cli"),
    ):
        assert command[1:3] == ("-P", "-m"), command
    assert container_script("some.module", "/python").endswith("exec /python -P -m some.module\n")


@pytest.mark.parametrize("module", sorted(MODULES))
def test_no_module_has_a_command_that_does(module: str) -> None:
    assert list(_unsafe_commands(MODULES[module].read_text())) == []


def test_no_script_has_a_command_that_does() -> None:
    scripts = list((ROOT / "scripts").rglob("*.sh"))
    assert scripts
    assert [found for path in scripts for found in _unsafe_in_shell(path.read_text())] == []


@pytest.mark.parametrize(
    "source",
    [
        "x = (sys.executable, '-m', 'yarnflow.cli')",
        "x = [python or sys.executable, '-c', code]",
        "x = [*words, '-m', name]",
        "x = f'exec {interpreter} -m {module}'",
        "x = 'exec python3 -m yarnflow.cli submit'",
    ],
)
def test_such_commands_are_found(source: str) -> None:
    assert list(_unsafe_commands(source))
    assert (
        list(
            _unsafe_commands(
                source.replace("'-m'", "'-P', '-m'").replace(" -m", " -P -m").replace("-c", "-P")
            )
        )
        == []
    )

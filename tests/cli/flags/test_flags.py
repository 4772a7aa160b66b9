"""Flags of Flink's command lines: each sets what it stands for, says a word, or says what to use instead."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from yarnflow.cli.flags.flink_flags import (
    CHECKPOINT_FLAGS,
    INFO_FLAGS,
    PROGRAM_FLAGS,
    SAVEPOINT_FLAGS,
    SESSION_FLAGS,
    YARN_FLAGS,
    FlinkFlag,
    flink_flags,
    savepoint_type,
)
from yarnflow.cli.flags.option_flags import SESSION, SUBMIT, OptionFlag, option_flags
from yarnflow.cli.flags.program_flags import NamedProgram, python_flags, python_program
from yarnflow.config.options import ALL_OPTIONS
from yarnflow.errors import InvalidOption, ProgramNotFound

ALL_FLINK_FLAGS = (
    *PROGRAM_FLAGS, *INFO_FLAGS, *YARN_FLAGS, *SESSION_FLAGS, *CHECKPOINT_FLAGS, *SAVEPOINT_FLAGS,
)  # fmt: skip


def values_of(table: tuple[OptionFlag, ...], *arguments: str) -> dict[str, str]:
    found: list[dict[str, str]] = []

    @click.command()
    @option_flags(table)
    def command(values: dict[str, str]) -> None:
        found.append(values)

    command.main(list(arguments), standalone_mode=False)
    return found[0]


@pytest.mark.parametrize(
    ("typed", "values"),
    [
        ("", {}),
        ("-p 3 -d", {"parallelism.default": "3", "execution.attached": "false"}),
        # -yd of Flink is -d
        ("-yd", {"execution.attached": "false"}),
        # Flink's unit there is MiB
        ("-yjm 800 -ytm 2048", {
            "jobmanager.memory.process.size": "800m", "taskmanager.memory.process.size": "2048m",
        }),
        ("-ytm 2g", {"taskmanager.memory.process.size": "2g"}),
        ("-ys 2 -ynm N -yqu q -ynl gpu", {
            "taskmanager.numberOfTaskSlots": "2", "yarn.application.name": "N", "yarn.application.queue": "q",
            "yarn.application.node-label": "gpu",
        }),
        ("-C file:///a.jar -C file:///b.jar", {"pipeline.classpaths": "file:///a.jar;file:///b.jar"}),
        ("-pyexec /usr/bin/python3 -pyarch a.zip#a", {
            "python.executable": "/usr/bin/python3", "yarn.ship-archives": "a.zip#a",
        }),
        ("-sae --job-key k", {"execution.shutdown-on-attached-exit": "true", "pipeline.job-key": "k"}),
    ],
)  # fmt: skip
def test_flags_of_a_submit(typed: str, values: dict[str, str]) -> None:
    assert values_of(SUBMIT, *typed.split()) == values


def test_flags_of_yarn_session(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("b")
    (tmp_path / "a.txt").write_text("a")
    typed = ["-jm", "1024", "-tm", "4g", "-s", "2", "-nm", "N", "-qu", "q", "-nl", "gpu", "-t", str(tmp_path)]
    assert values_of(SESSION, *typed) == {
        "jobmanager.memory.process.size": "1024m",
        "taskmanager.memory.process.size": "4g",
        "taskmanager.numberOfTaskSlots": "2",
        "yarn.application.name": "N",
        "yarn.application.queue": "q",
        "yarn.application.node-label": "gpu",
        "yarn.ship-files": f"{tmp_path}/a.txt;{tmp_path}/b.txt",
    }
    (tmp_path / "below").mkdir()
    with pytest.raises(InvalidOption, match=r"has directories in it \(below\)"):
        values_of(SESSION, "-t", str(tmp_path))


def test_flags_set_options_there_are() -> None:
    keys = {option.key for option in ALL_OPTIONS}
    for flag in (*SUBMIT, *SESSION):
        assert flag.key in keys or flag.key.startswith("spark."), flag.names


def test_no_name_is_two_flags() -> None:
    for table in (SUBMIT, SESSION):
        names = [name for flag in table for name in flag.names]
        assert len(names) == len(set(names))


@pytest.mark.parametrize("flag", ALL_FLINK_FLAGS, ids=lambda flag: flag.names[0])
def test_a_flag_without_a_meaning_is_taken_with_a_word_or_refused_with_one(flag: FlinkFlag) -> None:
    @click.command()
    @flink_flags(flag)
    def command() -> None:
        click.echo("ran")

    for name in flag.names:
        result = CliRunner().invoke(command, [name, *(["x"] if flag.takes_value else [])])
        assert flag.said.split()[-1] in result.output
        assert result.exit_code == (2 if flag.refused else 0) and ("ran" in result.output) is not flag.refused
    assert CliRunner().invoke(command, []).output == "ran\n"
    assert flag.names[0] not in CliRunner().invoke(command, ["--help"]).output


@pytest.mark.parametrize(("typed", "status"), [("native", 0), ("NATIVE", 0), ("canonical", 2), ("other", 2)])
def test_savepoints_have_one_format(typed: str, status: int) -> None:
    @click.command()
    @savepoint_type
    def command() -> None: ...

    result = CliRunner().invoke(command, ["-type", typed])
    assert result.exit_code == status
    if typed == "canonical":
        assert "savepoints have one format" in result.output


def program_of(*arguments: str) -> NamedProgram | None:
    found: list[NamedProgram | None] = []

    @click.command(context_settings={"allow_interspersed_args": False})
    @python_flags
    @click.argument("program", required=False)
    @click.argument("arguments", nargs=-1)
    def command(program: str | None, arguments: tuple[str, ...], **flags: str | None) -> None:
        found.append(python_program(flags, program, arguments))

    command.main(list(arguments), standalone_mode=False)
    return found[0]


def test_a_program_by_its_file() -> None:
    assert program_of("job.py", "x") == NamedProgram("job.py", ("x",), ())
    assert program_of("-py", "job.py", "-pyfs", "a.zip,b", "x", "y") == NamedProgram(
        "job.py", ("x", "y"), ("a.zip", "b")
    )
    assert program_of("-pyfs", "a.zip") is None


def test_a_program_by_its_module(tmp_path: Path) -> None:
    package = tmp_path / "src" / "company" / "nightly"
    package.mkdir(parents=True)
    (package / "job.py").write_text("import yarnflow")
    (package / "__main__.py").write_text("import yarnflow")
    (tmp_path / "single.py").write_text("import yarnflow")
    files = f"{tmp_path}/lib.zip,{tmp_path}/single.py,{tmp_path}/src"

    def path_of(module: str) -> str:
        named = program_of("-pyfs", files, "-pym", module, "argument")
        assert named is not None and named.arguments == ("argument",)
        return named.path

    assert path_of("company.nightly.job") == f"{package}/job.py"
    assert path_of("company.nightly") == f"{package}/__main__.py"
    assert path_of("single") == f"{tmp_path}/single.py"
    with pytest.raises(ProgramNotFound, match="of an archive name the directory"):
        path_of("company.weekly")


def test_the_python_that_runs_main_is_this_one(tmp_path: Path) -> None:
    import sys

    assert program_of("-pyclientexec", sys.executable, "job.py") is not None
    with pytest.raises(InvalidOption, match="main\\(\\) runs in the Python that runs yarnflow"):
        program_of("-pyclientexec", "/bin/sh", "job.py")

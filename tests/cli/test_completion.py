"""What a shell completes, and what that costs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from tests.client.test_local import JOB, OTHER, Machine
from yarnflow.cli.completion import completion_script
from yarnflow.cli.main import main, yarnflow
from yarnflow.client import local
from yarnflow.errors import ConfigError, RpcUnavailable

ROOT = str(Path(__file__).parents[2])


def completed(*words: str) -> list[str]:
    """What the last word may become."""
    shell = ShellComplete(yarnflow, {}, "yarnflow", "_YARNFLOW_COMPLETE")
    return [item.value for item in shell.get_completions(list(words[:-1]), words[-1])]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    made = Machine(tmp_path / "clusters")
    monkeypatch.setattr(local, "_by_thrift", lambda configuration: made.open)
    return made


def test_verbs_and_flags() -> None:
    assert completed("ch") == ["checkpoint", "checkpoints"]
    assert completed("--ver") == ["--version"]
    assert {"--json", "--target"} <= set(completed("list", "--"))
    assert "start" in completed("session", "st")
    assert completed("log-level", "yarnflow", "W") == ["warn"]
    assert "-ynm" not in completed("submit", "-y"), "habits of Flink's users are left out, as in the help"


def test_values_of_flags() -> None:
    assert completed("list", "-t", "yarn-s") == ["yarn-session"]
    assert completed("list", "-D", "heartbeat.int") == ["heartbeat.interval="]
    assert completed("submit", "--on-existing", "") == ["attach", "fail", "replace"]


def test_jobs_there_are(machine: Machine) -> None:
    machine.start("localhost:7", OTHER)
    machine.start("localhost:8", JOB)
    assert completed("cancel", "") == [OTHER, JOB] or completed("cancel", "") == [JOB, OTHER]
    assert completed("stop", "ab") == [JOB] == completed("info", "ab")


def test_a_cluster_that_is_gone_completes_nothing(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    machine.start("localhost:7", JOB)
    machine.gateways.dispatchers["localhost:7"].down = RpcUnavailable("nobody listens")
    assert completed("cancel", "ab") == []
    monkeypatch.setenv("YARNFLOW_CONF_DIR", "/none")
    assert completed("cancel", "ab") == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_printed(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    out = capsys.readouterr().out
    assert f"_YARNFLOW_COMPLETE={shell}_complete" in out and "yarnflow" in out
    assert main(["completion", "csh"]) == 2


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_completes_by_it(tmp_path: Path) -> None:
    command = tmp_path / "yarnflow"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m yarnflow.cli "$@"\n')
    command.chmod(0o755)
    ask = 'COMP_WORDS=(yarnflow sess); COMP_CWORD=1; _yarnflow_completion yarnflow; echo "${COMPREPLY[@]}"'
    path = f"{tmp_path}:{os.environ['PATH']}"
    environ = {**os.environ, "PATH": path, "PYTHONPATH": ROOT}
    script = completion_script("bash").replace("_yarnflow_completion_setup;", "")
    out = subprocess.run(
        ["bash", "-c", f"{script}\n{ask}"], env=environ, capture_output=True, text=True, check=True
    )
    assert out.stdout == "session\n", out.stderr


def test_other_commands_load_nothing_of_it() -> None:
    code = (
        "import sys; from yarnflow.cli.main import main; main(['version'])\n"
        "print([name for name in sys.modules if 'completion' in name and 'values' not in name])"
    )
    out = subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True)
    assert out.splitlines()[-1] == "[]"


def test_a_broken_configuration_keeps_nobody_from_typing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "yarnflow-conf.yaml").write_text("a: [")
    monkeypatch.setenv("YARNFLOW_CONF_DIR", str(tmp_path))
    assert main(["list"]) == ConfigError.exit_code
    assert completed("list", "-t", "loc") == ["local"] and completed("cancel", "") == []

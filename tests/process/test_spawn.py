"""Children die with their parents, whatever kills the parents."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE
from yarnflow.errors import ResourceError
from yarnflow.process.spawn import ORPHANED_EXIT_STATUS, ProcessSpec, spawn, tail, wrap_command


def _await_end(pid: int) -> bool:
    """Whether the process ends (it need not be our child)."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], PATIENCE.process_s)[0])
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("setpriv", [True, False])
def test_killing_the_parent_kills_child_and_grandchild(tmp_path: Path, setpriv: bool) -> None:
    script = tmp_path / "parent.py"
    path: dict[str, str] = {}
    if not setpriv:
        sleep = shutil.which("sleep")
        assert sleep is not None
        (tmp_path / "sleep").symlink_to(sleep)
        path = {"PATH": str(tmp_path)}
    script.write_text(
        textwrap.dedent("""
            import os, subprocess, sys
            from yarnflow.process import spawn as module
            if len(sys.argv) > 1:
                child = module.spawn(module.ProcessSpec("sleeper", ("sleep", "600")))
                print(os.getpid(), child.pid, flush=True)
            else:
                module.spawn(module.ProcessSpec("middle", (sys.executable, __file__, "middle")))
            module.threading.Event().wait()
            """)
    )
    parent = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **path},
    )
    assert parent.stdout is not None
    middle, sleeper = map(int, parent.stdout.readline().split())
    parent.kill()
    parent.wait(PATIENCE.process_s)
    parent.stdout.close()
    assert _await_end(middle)
    assert _await_end(sleeper)


@pytest.mark.parametrize("setpriv", [True, False])
def test_wrapper_refuses_to_start_under_another_parent(setpriv: bool) -> None:
    command = [part if part != str(os.getpid()) else "1" for part in wrap_command(["true"], setpriv=setpriv)]
    assert subprocess.run(command, timeout=PATIENCE.process_s).returncode == ORPHANED_EXIT_STATUS


@pytest.mark.parametrize("setpriv", [True, False])
def test_wrapper_passes_arguments_unchanged(setpriv: bool) -> None:
    arguments = ["a b", "$HOME", "'", "", "--pdeathsig"]
    code = "import sys; print(sys.argv[1:])"
    command = wrap_command([sys.executable, "-c", code, *arguments], setpriv=setpriv)
    assert subprocess.check_output(command, timeout=PATIENCE.process_s).decode().strip() == str(arguments)


def test_exit_status_and_listeners() -> None:
    child = spawn(ProcessSpec("failing", ("sh", "-c", "read line; exit $line"), stdin_pipe=True))
    seen: list[int] = []
    child.on_exit(seen.append)
    assert child.alive and child.exit_status is None
    assert child.write_line("7")
    assert child.wait(PATIENCE.process_s) == 7
    child.on_exit(seen.append)  # too late for the watcher: called at once
    child.on_exit(lambda status: seen.append(status * 2))
    assert sorted(seen)[-2:] == [7, 14]
    assert not child.write_line("8")


def test_killed_child_reports_its_signal() -> None:
    child = spawn(ProcessSpec("sleeper", ("sleep", "600")))
    child.kill_group()
    assert child.wait(PATIENCE.process_s) == -signal.SIGKILL
    child.kill_group()  # of nobody


def test_terminate_kills_what_ignores_term(tmp_path: Path) -> None:
    child = spawn(
        ProcessSpec(
            "stubborn",
            ("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 600; done"),
            log_file=tmp_path / "out",
        )
    )
    while "ready" not in child.output_tail():
        assert child.alive
    assert child.terminate_group(grace_s=0.05) == -signal.SIGKILL


def test_rest_of_the_group_ends_with_its_head(tmp_path: Path) -> None:
    child = spawn(ProcessSpec("head", ("sh", "-c", "sleep 600 & echo $!"), log_file=tmp_path / "out"))
    assert child.wait(PATIENCE.process_s) == 0
    assert _await_end(int(child.output_tail()))


def test_output_goes_to_the_log_file(tmp_path: Path) -> None:
    child = spawn(
        ProcessSpec("noisy", ("sh", "-c", "echo 2; echo 3; echo e >&2"), log_file=tmp_path / "l" / "x")
    )
    child.wait(PATIENCE.process_s)
    assert child.output_tail(2) == "3\ne"
    # YARN reads the logs of its containers through the group
    assert (tmp_path / "l" / "x").stat().st_mode & 0o037 == 0


def test_its_directories_are_its_own_and_go_with_it(tmp_path: Path) -> None:
    scratch = tmp_path / "new" / "scratch"
    go = tmp_path / "go"
    os.mkfifo(go)
    child = spawn(ProcessSpec("x", ("sh", "-c", f"cat {go}; kill -9 $$"), directories=(scratch,)))
    assert scratch.stat().st_mode & 0o777 == 0o700
    (scratch / "file").write_text("gigabytes")
    (scratch / "shared").symlink_to(tmp_path)
    ended = threading.Event()
    child.on_exit(lambda status: ended.set())
    go.write_text("")
    assert ended.wait(PATIENCE.thread_s)
    for thread in threading.enumerate():
        if thread.name == "remove-directories":
            thread.join(PATIENCE.thread_s)
    assert not scratch.exists() and go.exists()


def test_the_next_one_may_have_the_same_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch, go = tmp_path / "scratch", threading.Event()
    remove = shutil.rmtree

    def wait(path: Path, **options: Any) -> None:
        go.wait(PATIENCE.thread_s)
        remove(path, **options)

    monkeypatch.setattr(shutil, "rmtree", wait)
    first = spawn(ProcessSpec("x", ("true",), directories=(scratch,)))
    first.wait(PATIENCE.thread_s)
    second = spawn(ProcessSpec("x", ("sleep", "600"), directories=(scratch,)))
    go.set()
    for thread in threading.enumerate():
        if thread.name == "remove-directories":
            thread.join(PATIENCE.thread_s)
    assert os.listdir(tmp_path) == ["scratch"]
    second.kill_group()
    second.wait(PATIENCE.thread_s)


def test_its_directories_are_deleted_before_this_process_ends(tmp_path: Path) -> None:
    """Whoever waits for a child's end may leave at once."""
    scratch = tmp_path / "scratch"
    script = textwrap.dedent(f"""
        from pathlib import Path
        from yarnflow.process.spawn import ProcessSpec, spawn
        scratch = Path({str(scratch)!r})
        child = spawn(ProcessSpec("x", ("sleep", "600"), directories=(scratch,)))
        for number in range(2000):
            (scratch / str(number)).touch()
        child.kill_group()
        child.wait({PATIENCE.process_s})
        """)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)
    assert not scratch.exists()


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    first, second = tmp_path / "first", tmp_path / "file" / "scratch"
    with pytest.raises(ResourceError, match=f"cannot start process x .*Not a directory: {second}"):
        spawn(ProcessSpec("x", ("true",), directories=(first, second)))
    assert not first.exists()


def test_unknown_program(tmp_path: Path) -> None:
    child = spawn(ProcessSpec("nothing", ("/does/not/exist",), log_file=tmp_path / "log"))
    assert child.wait(PATIENCE.process_s) == 127
    with pytest.raises(ResourceError, match="cannot start process here"):
        spawn(ProcessSpec("here", ("true",), cwd=tmp_path / "missing"))


def test_tail_of_missing_file(tmp_path: Path) -> None:
    assert tail(tmp_path / "none") == ""


def test_what_an_earlier_process_has_written_is_not_a_later_ones(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("error: no port of 6123 is free\n")
    silent = spawn(ProcessSpec("silent", ("true",), log_file=log))
    assert silent.wait(PATIENCE.process_s) == 0
    assert silent.output_tail(3) == ""
    child = spawn(ProcessSpec("c", ("sh", "-c", "echo one; echo two"), log_file=log))
    assert child.wait(PATIENCE.process_s) == 0
    assert child.output_tail(3) == "one\ntwo"
    log.write_text("one\n")
    assert child.output_tail(3) == "one", "it has been rotated, so all of it is the child's"


def test_a_whole_environment_is_not_added_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_THE_PARENT", "1")
    for whole, left in ((True, "no"), (False, "1")):
        out = tmp_path / f"out-{whole}"
        environment = {"PATH": os.environ["PATH"]}
        command = ("sh", "-c", "echo ${OF_THE_PARENT:-no}")
        child = spawn(
            ProcessSpec("c", command, log_file=out, environment=environment, whole_environment=whole)
        )
        assert child.wait(PATIENCE.process_s) == 0
        assert out.read_text().strip() == left


@pytest.mark.parametrize("setpriv", [True, False])
def test_another_signal_than_kill_when_the_parent_ends(setpriv: bool, tmp_path: Path) -> None:
    ended = tmp_path / "ended"
    child = (
        "import pathlib, signal, sys\n"
        f"signal.signal(signal.SIGTERM, lambda *_: (pathlib.Path({str(ended)!r}).touch(), sys.exit()))\n"
        "print('ready', flush=True)\n"
        "signal.pause()\n"
    )
    parent = (
        "import signal, subprocess, sys\n"
        "from yarnflow.process.spawn import wrap_command\n"
        f"command = wrap_command([sys.executable, '-c', {child!r}], setpriv={setpriv},\n"
        "                       death_signal=signal.SIGTERM)\n"
        "subprocess.Popen(command).wait()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", parent],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.kill()
    process.wait(PATIENCE.process_s)
    # the child holds the other end until it has ended
    assert process.stdout.read() == ""
    process.stdout.close()
    assert ended.exists()

"""Record what Apache PyFlink prints for the programs of this suite; ``scripts/record-pyflink`` runs it.

It runs in the virtual environment of Apache PyFlink and needs nothing but the standard library.  Programs
run one after the other in one Python process with one JVM: a JVM of its own for each would be most of the
time.  Each program still has its own environment, jobs and miniclusters.  One that fails or hangs ends its
process; the others go on in the next one.

Standard output of the process and its JVM is one file.  When a program has ended, what was added to the file
is the program's output.
"""

from __future__ import annotations

import argparse
import logging
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

# started as a file, Python finds this folder only; with the project's root on its path it might find
# something else than Apache's under the name pyflink
if TYPE_CHECKING or __package__:
    from integration.pyflink.programs import EXPECTED, Program, examples, programs
else:
    from programs import EXPECTED, Program, examples, programs

_TIMEOUT_S: Final = 180.0
_LOOK_EVERY_S: Final = 0.2
#: the quick compiler starts programs sooner, and none of them lives long
_JVM_ARGS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx1g"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run programs, twice each, and write their expected files; 1 if one failed or its two outputs differ."""
    parser = argparse.ArgumentParser(description="record what Apache PyFlink prints")
    parser.add_argument("names", nargs="*", help="programs, without .py (default: all)")
    parser.add_argument("--runs", type=int, default=2, help="how often each one runs; outputs must be equal")
    parser.add_argument("--show", action="store_true", help="print the output instead of writing files")
    parser.add_argument("--run-here", metavar="DIRECTORY", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.run_here:
        _run_here([Path(name) for name in options.names], Path(options.run_here))
    known = {program.name: program for program in [*programs(), *examples(_installed_pyflink())]}
    if unknown := sorted(set(options.names) - known.keys()):
        parser.error(f"no such program: {', '.join(unknown)}")
    wanted = [known[name] for name in options.names] or list(known.values())
    runs = [_run(wanted) for _ in range(options.runs)]
    failed = [program.name for program in wanted if not _write(program, runs, show=options.show)]
    if not options.names and not options.show:
        _remove_others(list(known.values()))
    print(f"recorded: {len(wanted) - len(failed)}, failed: {len(failed)} {' '.join(failed)}")
    return 1 if failed else 0


def _installed_pyflink() -> Path:
    import importlib.util

    found = importlib.util.find_spec("pyflink")
    if found is None or found.origin is None:
        raise SystemExit("Apache PyFlink is not installed in this environment: use scripts/record-pyflink")
    return Path(found.origin).parent


def _write(program: Program, runs: list[dict[str, str]], *, show: bool) -> bool:
    outputs = [run.get(program.name) for run in runs]
    if None in outputs:
        print(f"{program.name}: failed")
        return False
    forms = [program.comparable(output) for output in outputs if output is not None]
    if any(form != forms[0] for form in forms):
        print(f"{program.name}: differs between its runs:")
        for form in forms:
            print(*form, sep="\n", end="\n--\n")
        return False
    text = "".join(f"{line}\n" for line in forms[0])
    if show:
        print(f"== {program.name}\n{text}", end="")
    else:
        program.expected.parent.mkdir(exist_ok=True)
        program.expected.write_text(text, encoding="utf-8")
    return True


def _remove_others(known: list[Program]) -> None:
    kept = {path for program in known for path in (program.expected, program.wanted)}
    for path in EXPECTED.rglob("*.txt"):
        if path not in kept:
            path.unlink()


def _run(wanted: list[Program]) -> dict[str, str]:
    """Run programs in as few processes as their failures allow; outputs by name."""
    outputs: dict[str, str] = {}
    waiting = list(wanted)
    while waiting:
        with tempfile.TemporaryDirectory() as name:
            directory = Path(name)
            _watch(waiting, directory)
            done = 0
            for program in waiting:
                output = directory / f"{program.name}.out"
                if not output.exists():
                    break
                outputs[program.name] = output.read_text(encoding="utf-8")
                done += 1
            if done < len(waiting):
                print(f"{waiting[done].name}: gave no output; see above", file=sys.stderr)
            waiting = waiting[done + 1 :]
    return outputs


def _watch(waiting: list[Program], directory: Path) -> None:
    """Run programs in one process, which is killed when one of them takes too long."""
    temporary = directory / "temporary"
    temporary.mkdir()
    command = [sys.executable, __file__, "--run-here", str(directory)]
    environment = {
        **os.environ,
        "JVM_ARGS": f"{_JVM_ARGS} -Djava.io.tmpdir={temporary}",
        "TMPDIR": str(temporary),
    }
    with (directory / "stdout").open("ab") as stdout:
        process = subprocess.Popen(
            [*command, *[str(program.path) for program in waiting]],
            stdout=stdout,
            env=environment,
            start_new_session=True,
        )
    done, since = 0, time.monotonic()
    try:
        while process.poll() is None:
            time.sleep(_LOOK_EVERY_S)
            if (now_done := len(list(directory.glob("*.out")))) > done:
                done, since = now_done, time.monotonic()
            if time.monotonic() - since > _TIMEOUT_S:
                print(f"{waiting[done].name}: longer than {_TIMEOUT_S:.0f} s", file=sys.stderr)
                break
    finally:
        _kill_group(process)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # all of them ended by themselves
    process.wait()


def _run_here(paths: list[Path], directory: Path) -> None:
    """Run programs in this process; the first failure ends it, as PyFlink may be in any state then."""
    stdout = directory / "stdout"
    # examples of Apache PyFlink log to standard output, unless a handler is there already
    logging.basicConfig(level=logging.WARNING)
    for path in paths:
        begin = stdout.stat().st_size
        began = time.monotonic()
        try:
            os.chdir(path.parent)
            sys.argv = [str(path)]
            runpy.run_path(str(path), run_name="__main__")
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        sys.stdout.flush()
        print(f"{path.stem}: {time.monotonic() - began:.1f} s", file=sys.stderr)
        with stdout.open("rb") as file:
            file.seek(begin)
            written = directory / "written"
            written.write_bytes(file.read())
            written.rename(directory / f"{path.stem}.out")
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())

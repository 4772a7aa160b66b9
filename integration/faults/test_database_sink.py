"""kill -9 of driver, executor and database while a job counts words into a database; every row is counted.

The job is paced (one small file in each micro-batch), so that there always is a middle.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.conftest import Commands, wait_until
from integration.database_servers import SERVERS
from integration.faults.counted_words import (
    TABLE,
    assert_each_once,
    await_lines,
    from_files,
    program,
    rows_of_database,
    to_database,
    word,
)
from integration.processes import kill_driver, replace_executor
from integration.servers import running
from tests.patience import PATIENCE

FILES, LINES = 20, 25
KINDS = ("postgresql", "mariadb")


@pytest.mark.drill
@pytest.mark.parametrize("kind", KINDS)
def test_every_row_once(yarnflow: Commands, tmp_path: Path, kind: str) -> None:
    counts, lines = tmp_path / "counts.py", tmp_path / "lines"
    lines.mkdir()
    for file in range(FILES):
        numbers = range(file * LINES, (file + 1) * LINES)
        (lines / f"{file:03}.csv").write_text("".join(f"{word(n)},{n}\n" for n in numbers))
    with running(SERVERS[kind]) as server:
        server.run(TABLE)
        counts.write_text(program(from_files(lines), to_database(server)))
        started = yarnflow.start("submit", "-p", "2", "-Dexecution.micro-batch.interval=1 s", counts)

        def two_more_files() -> None:
            await_lines(
                started, lambda: rows_of_database(server), len(rows_of_database(server)) + 2 * LINES
            )

        two_more_files()
        replace_executor(yarnflow.mark)
        two_more_files()
        kill_driver(yarnflow.mark)
        two_more_files()
        server.kill()
        # it has been missed: the attempt failed with its retries, and another one begins
        wait_until(lambda: f":{server.port}" in started.stderr, "the job to miss its database")
        server.start()
        two_more_files()

        assert started.wait(PATIENCE.job_s) == 0
        rows = rows_of_database(server)
        attempts = server.query("SELECT attempt FROM yarnflow_batches")
    assert_each_once(rows, FILES * LINES)
    assert len(attempts) == 1 and int(attempts[0][0]) >= 3, "driver and database were missed"

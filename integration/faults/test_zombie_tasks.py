"""A task on a TaskManager that is cut off goes on behind its successor; PostgreSQL refuses it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import psutil

from integration.conftest import Commands, wait_until
from integration.database_servers import PASSWORD, USER, PostgreSql
from integration.faults.ha_cluster import frozen
from integration.processes import TASK_MANAGER, kill_driver, processes, tree
from integration.servers import running

FILES, LINES = 2, 30
#: an insert waits where the test says so
TABLES = ("CREATE TABLE numbers (n INT)", "CREATE TABLE gate (open INT)", "INSERT INTO gate VALUES (1)")
_PROGRAM = """
from pyflink.common import Types
from pyflink.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExecutionOptions, JdbcSink
from yarnflow.api import FileSource, StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
source = FileSource({directory!r}, "csv", "n INT", bounded=False, max_files_per_trigger=1)
connection = (
    JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
    .with_url({url!r}).with_user_name({user!r}).with_password({password!r}).build()
)
execution = JdbcExecutionOptions.builder().with_batch_size(10).build()
insert = "INSERT INTO numbers SELECT CAST(? AS INT) FROM gate"
row = Types.ROW_NAMED(["n"], [Types.INT()])
env.from_source(source, None, "numbers").add_sink(JdbcSink.sink(insert, row, connection, execution))
env.execute("numbers")
"""


@contextmanager
def closed_gate(server: PostgreSql) -> Iterator[None]:
    """Inserts wait meanwhile."""
    with closing(server.connect()) as connection:
        connection.execute("LOCK TABLE gate IN ACCESS EXCLUSIVE MODE")
        yield


def sessions(server: PostgreSql, state: str) -> list[tuple[int, int]]:
    """Process of the server's and port of the client, of the job's sessions."""
    return server.query(
        f"SELECT pid, client_port FROM pg_stat_activity WHERE application_name = 'yarnflow' AND {state}"
    )


def client(mark: str, port: int) -> tuple[psutil.Process, psutil.Process]:
    """The worker that has a connection, and its TaskManager."""
    for task_manager in processes(mark, TASK_MANAGER):
        for process in tree(task_manager):
            with suppress(psutil.NoSuchProcess):
                if any(one.laddr.port == port for one in process.net_connections("tcp4") if one.raddr):
                    return process, task_manager
    raise AssertionError(f"nobody has port {port}")


def statements(server: PostgreSql, session: int) -> list[str]:
    """What a session has been told, in order."""
    lines = (server.directory / "log").read_text(errors="replace").splitlines()
    found = (re.search(rf"\[{session}\] LOG:  (?:statement|execute [^:]+): (.+)", line) for line in lines)
    return [match[1] for match in found if match]


def test_what_goes_on_after_its_successor_is_refused_by_its_token(yarnflow: Commands, tmp_path: Path) -> None:
    program, lines = tmp_path / "copied_numbers.py", tmp_path / "in"
    lines.mkdir()
    for file in range(FILES):
        numbers = range(file * LINES, (file + 1) * LINES)
        (lines / f"{file}.csv").write_text("".join(f"{n}\n" for n in numbers))
    with running(PostgreSql) as server:
        server.run(*TABLES, f"ALTER ROLE {USER} SET log_statement = 'all'")
        program.write_text(
            _PROGRAM.format(directory=str(lines), url=server.url, user=USER, password=PASSWORD)
        )
        with closed_gate(server):
            started = yarnflow.start(
                "submit", "-p", "1", "-Dminicluster.number-of-taskmanagers=2", "-Dheartbeat.interval=1 s",
                "-Dheartbeat.timeout=20 s", program,
            )  # fmt: skip

            def waits() -> list[tuple[int, int]]:
                assert started.process.poll() is None, started.stderr
                return sessions(server, "wait_event_type = 'Lock' AND query LIKE 'INSERT%'")

            ((session, port),) = wait_until(waits, "the job to write")
            worker, task_manager = client(yarnflow.mark, port)
            cut_off = frozen(tree(task_manager))
            cut_off.__enter__()
        try:
            # it has inserted some rows, and neither noted nor committed them
            middle = f"pid = {session} AND wait_event = 'ClientRead'"
            wait_until(lambda: sessions(server, middle), "the server to have inserted what it was sent")
            kill_driver(yarnflow.mark)
            last = f"SELECT attempt FROM yarnflow_batches WHERE attempt > 1 AND batch_id = {FILES - 1}"
            wait_until(lambda: server.query(last), "the next attempt to have written all")
            assert sessions(server, middle), "the task was to be in its transaction still"
            # its executor would end it before it has written, so it goes on alone
            worker.resume()
            wait_until(lambda: not sessions(server, f"pid = {session}"), "the task to end its session")
            rows = sorted(n for (n,) in server.query("SELECT n FROM numbers"))
            assert len(server.query(last)) == 1
        finally:
            cut_off.__exit__(None, None, None)
        told = statements(server, session)
        started.process.terminate()
        started.wait()
    assert rows == list(range(FILES * LINES))
    noted = [number for number, text in enumerate(told) if text.startswith("UPDATE yarnflow_batches")]
    assert len(noted) == 1 and "attempt = 1 AND batch_id < 0" in told[noted[0]], told
    inserts = [number for number, text in enumerate(told) if text.startswith("INSERT INTO numbers")]
    assert len(inserts) == LINES and inserts[-1] < noted[0], "it has written all of the batch"
    assert told[noted[0] + 1] == "ROLLBACK" and "COMMIT" not in told[inserts[0] :], told

"""kill -9 of each process below a job that counts what a topic gets, into a database or files, each once.

A producer writes all the time, so whatever is killed is in the middle of something, and what comes after the
faults shows that nothing was left behind by them.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from integration.conftest import Commands, Started, wait_until
from integration.database_servers import PostgreSql
from integration.faults.counted_words import (
    TABLE,
    assert_each_once,
    await_lines,
    from_kafka,
    message,
    program,
    rows_of_database,
    rows_of_files,
    rows_of_topic,
    to_database,
    to_files,
    to_kafka,
)
from integration.kafka import KafkaBroker
from integration.processes import kill_driver, replace_executor
from integration.servers import running

# each of the faults has a shorter test beside this: test_kafka.py, test_database_sink.py, test_kills.py
pytestmark = pytest.mark.drill

PER_SECOND = 100
#: of all faults
ROUNDS = 4
#: of a batch
LINES = 1000

#: waits in a function for the middle of its input, and in the driver between two sinks, until it may go on
GATES = """
import time
from pathlib import Path


def await_leave(place):
    go = Path({directory!r}, place + "-go")
    if not go.exists():
        Path({directory!r}, place).touch()
        while not go.exists():
            time.sleep(0.05)


def in_the_middle(row):
    if row[2] == {line}:
        await_leave("function")
    return row


counts = counts.map(in_the_middle, COUNT)
"""
BETWEEN_SINKS = """
counts.foreach_batch(lambda frame, batch_id: await_leave("sinks"))
"""


def _start(yarnflow: Commands, text: str, *options: str) -> Started:
    counts = yarnflow.directory / "counts.py"
    counts.write_text(text)
    # a job on one machine gives up after a few restarts
    unlimited = "-Drestart-strategy.exponential-delay.attempts-before-reset-backoff=1000"
    interval = "-Dexecution.micro-batch.interval=300 ms"
    return yarnflow.start("submit", "-p", "2", interval, unlimited, *options, counts)


def test_into_a_database(yarnflow: Commands, own_kafka: KafkaBroker) -> None:
    topic = own_kafka.create_topic("lines")
    with running(PostgreSql) as server, own_kafka.writing(topic, message, PER_SECOND) as writer:
        server.run(TABLE)
        started = _start(yarnflow, program(from_kafka(own_kafka, topic), to_database(server)))

        def caught_up() -> None:
            """With all that was written until now, the time of the fault included."""
            await_lines(started, lambda: rows_of_database(server), writer.sent)

        caught_up()
        for _ in range(ROUNDS):
            replace_executor(yarnflow.mark)
            caught_up()
            kill_driver(yarnflow.mark)
            caught_up()
            own_kafka.kill()
            own_kafka.restart()
            caught_up()
            before = len(started.stderr)
            server.kill()
            # it has been missed: the attempt failed with its retries, and another one begins
            wait_until(lambda: f":{server.port}" in started.stderr[before:], "the database to be missed")
            server.start()
            caught_up()
        lines = writer.stop()
        caught_up()
        started.process.send_signal(signal.SIGINT)
        started.wait()
        rows = rows_of_database(server)
        attempts = server.query("SELECT attempt FROM yarnflow_batches")
    assert_each_once(rows, lines)
    assert len(attempts) == 1 and int(attempts[0][0]) > 2 * ROUNDS, "driver and database were missed"


@pytest.mark.parametrize("form", ["json", "csv"])
def test_into_files(yarnflow: Commands, kafka: KafkaBroker, tmp_path: Path, form: str) -> None:
    topic, out = kafka.create_topic(f"lines-{yarnflow.mark[:8]}"), tmp_path / "counts"
    with kafka.writing(topic, message, PER_SECOND) as writer:
        started = _start(yarnflow, program(from_kafka(kafka, topic), to_files(out, form)))

        def caught_up() -> None:
            await_lines(started, lambda: rows_of_files(out, form), writer.sent)

        caught_up()
        replace_executor(yarnflow.mark)
        caught_up()
        for _ in range(2):
            kill_driver(yarnflow.mark)
            caught_up()
        lines = writer.stop()
        caught_up()
        started.process.send_signal(signal.SIGINT)
        started.wait()
    assert started.stderr.count("to RESTARTING") == 2
    assert_each_once(rows_of_files(out, form), lines)


def test_a_batch_into_a_database_and_a_topic(yarnflow: Commands, kafka: KafkaBroker, tmp_path: Path) -> None:
    """An executor dies in the middle of the input, the driver when one of two sinks is written."""
    topic = kafka.create_topic(f"lines-{yarnflow.mark[:8]}")
    counts = kafka.create_topic(f"{topic}-counts")
    kafka.send_texts(topic, [message(line) for line in range(LINES)])
    with running(PostgreSql) as server:
        server.run(TABLE)
        gates = GATES.format(directory=str(tmp_path), line=LINES // 2)
        sinks = (gates, to_database(server), BETWEEN_SINKS, to_kafka(kafka, counts))
        text = program(from_kafka(kafka, topic, bounded=True), *sinks)
        started = _start(yarnflow, text, "-Dexecution.runtime-mode=BATCH")

        def reached(place: str) -> None:
            def is_there() -> bool:
                assert started.process.poll() is None, "the job ended before it"
                return (tmp_path / place).exists()

            wait_until(is_there, f"the job to reach its {place}")
            (tmp_path / place).unlink()

        reached("function")
        replace_executor(yarnflow.mark)
        reached("function")
        (tmp_path / "function-go").touch()
        reached("sinks")
        assert_each_once(rows_of_database(server), LINES)
        assert not rows_of_topic(kafka, counts)
        # what comes now is not of the batch, however often that begins anew
        kafka.send_texts(topic, [message(LINES)])
        kill_driver(yarnflow.mark)
        reached("sinks")
        (tmp_path / "sinks-go").touch()
        assert started.wait() == 0
        assert "to RESTARTING" in started.stderr
        assert_each_once(rows_of_database(server), LINES)
        assert_each_once(rows_of_topic(kafka, counts), LINES)

        # another job: it reads all that is there by then, and writes it beside what is there
        assert _start(yarnflow, text, "-Dexecution.runtime-mode=BATCH").wait() == 0
        of_both = [*rows_of_database(server)], [*rows_of_topic(kafka, counts)]
    for rows in of_both:
        assert len(rows) == 2 * LINES + 1
        assert {line for _, _, line in rows} == set(range(LINES + 1))

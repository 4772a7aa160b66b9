"""A job that counts words, and the checker of its rows.

Line n has the word ``w<n % WORDS>``.  A row tells the line's number and how often its word has come, so what
was lost or doubled is seen, and whether the job's state agrees with its rows.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from integration.conftest import Started, wait_until
from integration.database_servers import PASSWORD, USER, DatabaseServer
from integration.living_files import files_below
from yarnflow.spark.connectors.file_sink import STAGING

if TYPE_CHECKING:
    from integration.kafka import KafkaBroker

WORDS: Final = 5
TABLE: Final = "CREATE TABLE counts (word VARCHAR(20), n INT, line INT)"

_PROGRAM: Final = """
import sys
from pyflink.common import Row, Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor

LINE = Types.ROW_NAMED(["word", "line"], [Types.STRING(), Types.INT()])
COUNT = Types.ROW_NAMED(["word", "n", "line"], [Types.STRING(), Types.INT(), Types.INT()])


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value, ctx):
        number = (self.count.value() or 0) + 1
        self.count.update(number)
        yield Row(word=value[0], n=number, line=value[1])


env = StreamExecutionEnvironment.get_execution_environment()
{source}
lines = env.from_source(source, None, "lines").map(lambda line: Row(word=line[0], line=line[1]), LINE)
counts = lines.key_by(lambda line: line[0]).process(Count(), COUNT)
{sink}
env.execute("counts")
"""
_FROM_FILES: Final = """
from yarnflow.api import FileSource
source = FileSource({directory!r}, "csv", "word STRING, line INT", max_files_per_trigger=1)
"""
_FROM_KAFKA: Final = """
from pyflink.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
from pyflink.datastream.formats.json import JsonRowDeserializationSchema
source = (
    KafkaSource.builder()
    .set_bootstrap_servers({servers!r})
    .set_topics({topic!r})
    .set_value_only_deserializer(JsonRowDeserializationSchema.builder().type_info(LINE).build())
    {more}
    .build()
)
"""
_TO_DATABASE: Final = """
from pyflink.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExecutionOptions, JdbcSink
connection = (
    JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
    .with_url({url!r})
    .with_driver_name("org.postgresql.Driver")
    .with_user_name({user!r})
    .with_password({password!r})
    .build()
)
execution = JdbcExecutionOptions.builder().with_batch_size(10).with_max_retries(1).build()
insert = "INSERT INTO counts (word, n, line) VALUES (?, ?, ?)"
counts.add_sink(JdbcSink.sink(insert, COUNT, connection, execution))
"""
_TO_FILES: Final = """
from yarnflow.api import FileSink
counts.sink_to(FileSink({directory!r}, {form!r}))
"""

_TO_KAFKA: Final = """
from pyflink.datastream.connectors import DeliveryGuarantee
from pyflink.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink
from pyflink.datastream.formats.json import JsonRowSerializationSchema
record = KafkaRecordSerializationSchema.builder().set_topic({topic!r})
record.set_value_serialization_schema(JsonRowSerializationSchema.builder().with_type_info(COUNT).build())
counts.sink_to(
    KafkaSink.builder()
    .set_bootstrap_servers({servers!r})
    .set_record_serializer(record.build())
    .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    .set_transactional_id_prefix({topic!r})
    .build()
)
"""

#: word, how often it has come, the line's number
Row = tuple[str, int, int]


def word(line: int) -> str:
    """The word of a line."""
    return f"w{line % WORDS}"


def message(line: int) -> str:
    """A line, for Kafka."""
    return json.dumps({"word": word(line), "line": line})


def program(source: str, *sinks: str) -> str:
    """Its text."""
    return _PROGRAM.format(source=source, sink="".join(sinks))


def from_files(directory: Path) -> str:
    """The source of a program: files of CSV, one in each micro-batch."""
    return _FROM_FILES.format(directory=str(directory))


def from_kafka(kafka: KafkaBroker, topic: str, *, per_batch: int | None = None, bounded: bool = False) -> str:
    """The source of a program: a topic, all of it or what is there now, as fast as may be."""
    more = ".set_bounded(KafkaOffsetsInitializer.latest())" if bounded else ""
    if per_batch is not None:
        more += f'.set_option("maxOffsetsPerTrigger", {per_batch})'
    return _FROM_KAFKA.format(servers=kafka.servers, topic=topic, more=more)


def to_database(server: DatabaseServer) -> str:
    """The sink of a program: the table :data:`TABLE`."""
    return _TO_DATABASE.format(url=server.url, user=USER, password=PASSWORD)


def to_files(directory: Path, form: str) -> str:
    """The sink of a program: ``csv`` or ``json``."""
    return _TO_FILES.format(directory=str(directory), form=form)


def to_kafka(kafka: KafkaBroker, topic: str) -> str:
    """The sink of a program: messages of a topic."""
    return _TO_KAFKA.format(servers=kafka.servers, topic=topic)


def rows_of_database(server: DatabaseServer) -> list[Row]:
    """What is in the table."""
    rows = server.query("SELECT word, n, line FROM counts")
    return [(str(text), int(n), int(line)) for text, n, line in rows]


def rows_of_files(directory: Path, form: str) -> list[Row]:
    """What is in the files that anybody sees."""
    found: list[Row] = []
    for file in files_below(directory, f"part-*.{form}"):
        if STAGING in file.parts:
            # written, and not committed: a job that ends now takes it along
            continue
        texts = file.read_text().splitlines()
        rows = csv.reader(texts) if form == "csv" else ([*json.loads(text).values()] for text in texts)
        found += [(str(text), int(n), int(line)) for text, n, line in rows]
    return found


def rows_of_topic(kafka: KafkaBroker, topic: str) -> list[Row]:
    """What those see that read committed messages."""
    found = [json.loads(one.value or b"") for one in kafka.read(topic)]
    return [(row["word"], row["n"], row["line"]) for row in found]


def await_lines(started: Started, rows: Callable[[], list[Row]], count: int) -> None:
    """Wait until so many lines have come."""

    def come() -> bool:
        assert started.process.poll() is None, "the job ended too early"
        return len({line for _, _, line in rows()}) >= count

    wait_until(come, f"{count} lines", pause_s=0.3)


def assert_each_once(found: Iterable[Row], lines: int) -> None:
    """So many lines, each counted once, and counted right."""
    rows = sorted(found, key=lambda row: row[2])
    assert [line for _, _, line in rows] == list(range(lines))
    assert [text for text, _, line in rows] == [word(line) for line in range(lines)]
    # one word's lines may come in any order
    assert sorted((text, n) for text, n, _ in rows) == sorted(
        (word(line), line // WORDS + 1) for line in range(lines)
    )

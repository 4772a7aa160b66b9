"""What the queries share: the events as streams, and where results go."""

from yarnflow import api

EVENT = """
    event_type INT,
    person STRUCT<id: BIGINT, name: STRING, email: STRING, card: STRING, city: STRING, state: STRING,
        time_ms: BIGINT, extra: STRING>,
    auction STRUCT<id: BIGINT, item: STRING, description: STRING, initial_bid: BIGINT, reserve: BIGINT,
        time_ms: BIGINT, expires_ms: BIGINT, seller: BIGINT, category: BIGINT, extra: STRING>,
    bid STRUCT<auction: BIGINT, bidder: BIGINT, price: BIGINT, channel: STRING, url: STRING,
        time_ms: BIGINT, extra: STRING>
"""
#: events come out of order, but not by more than that
DISORDER = "4 seconds"


class Tables:
    """Streams of a program, and its sink."""

    def __init__(self, out, directory):
        self.env = api.StreamExecutionEnvironment.get_execution_environment()
        self.env.set_parallelism(2)
        self._out = out
        # a micro-batch reads two files
        source = api.FileSource(directory, "json", EVENT, max_files_per_trigger=2)
        #: persons, auctions and bids
        self.events = self.env.from_source(source, None, "events")

    def persons(self, *fields):
        return self._table("person", 0, fields)

    def auctions(self, *fields):
        return self._table("auction", 1, fields)

    def bids(self, *fields):
        return self._table("bid", 2, fields)

    def _table(self, name, event_type, fields):
        return self.events.filter(f"event_type = {event_type}").select(*[f"{name}.{f}" for f in fields])

    def write(self, stream, job):
        """Run the program; its results go to CSV files."""
        stream.sink_to(api.FileSink(self._out, "csv"))
        self.env.execute(job)


def timed(stream):
    """The stream with event time, which is in its field time_ms."""
    times = api.WatermarkStrategy.for_bounded_out_of_orderness(DISORDER)
    return stream.assign_timestamps_and_watermarks(times.with_timestamp_assigner("timestamp_millis(time_ms)"))

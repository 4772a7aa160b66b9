"""Results of an async function carry the timestamp of their element."""

# compare: sorted
# run: drill

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AsyncDataStream, AsyncFunction, ProcessFunction, StreamExecutionEnvironment


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Echo(AsyncFunction):
    async def async_invoke(self, value):
        return [value[0], value[0].upper()]


class Tell(ProcessFunction):
    def process_element(self, value, ctx):
        yield f"{value} {ctx.timestamp()}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    events = env.from_collection([("a", 10), ("b", 20)], Types.TUPLE([Types.STRING(), Types.LONG()]))
    events = events.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    )
    results = AsyncDataStream.unordered_wait(events, Echo(), Time.seconds(20), 10, Types.STRING())
    results.process(Tell(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()

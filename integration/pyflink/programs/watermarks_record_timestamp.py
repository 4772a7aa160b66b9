"""What an assigner is given as record_timestamp where nothing assigned one before; a negative timestamp is
one.
"""

# compare: exact
# run: drill

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessFunction, StreamExecutionEnvironment


class Told(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return -value if record_timestamp == -(2**63) else record_timestamp


class Tell(ProcessFunction):
    def process_element(self, value, ctx):
        yield f"{value} {ctx.timestamp()}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(Told())
    env.from_collection([5, 6], Types.INT()).assign_timestamps_and_watermarks(strategy).process(
        Tell(), Types.STRING()
    ).print()
    env.execute()


if __name__ == "__main__":
    main()

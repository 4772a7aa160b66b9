"""Timestamps: none without an assigner, kept by map, flat_map, filter, key_by and union, replaced by a
second assigner.
"""

# compare: sorted
# run: drill

from pyflink.common import Duration, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction, ProcessFunction, StreamExecutionEnvironment

PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class TenTimes(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1] * 10 + record_timestamp


class Tell(ProcessFunction):
    def process_element(self, value, ctx):
        yield f"{value[0]} {ctx.timestamp()}"


class TellKeyed(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield f"{value[0]} {ctx.timestamp()}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    plain = env.from_collection([("a", 1), ("b", 2)], PAIR)
    plain.process(Tell(), Types.STRING()).print("none")
    stamped = plain.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    )
    stamped.process(Tell(), Types.STRING()).print("assigned")
    mapped = (
        stamped.map(lambda v: (v[0] + "m", v[1]), PAIR)
        .flat_map(lambda v: [v, v], PAIR)
        .filter(lambda v: True)
    )
    mapped.process(Tell(), Types.STRING()).print("mapped")
    mapped.key_by(lambda v: v[0]).process(TellKeyed(), Types.STRING()).print("keyed")
    mapped.union(plain).rebalance().process(Tell(), Types.STRING()).print("union")
    again = stamped.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5)).with_timestamp_assigner(
            TenTimes()
        )
    )
    again.process(Tell(), Types.STRING()).print("again")
    env.execute()


if __name__ == "__main__":
    main()

"""Windows with two subtasks over many keys: sums are complete, whichever subtask has a key."""

# compare: per-key
# run: drill

from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import TumblingEventTimeWindows


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Sum(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield f"{key},{context.window().start},{sum(element[1] for element in elements)}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    events = env.from_collection(
        [(f"k{n % 6}", n * 10) for n in range(60)], Types.TUPLE([Types.STRING(), Types.LONG()])
    )
    # elements of the two subtasks may overtake each other, so nothing is late only with enough patience
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_seconds(60)
    ).with_timestamp_assigner(Stamp())
    keyed = events.assign_timestamps_and_watermarks(strategy).key_by(lambda e: e[0], Types.STRING())
    keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(200))).process(Sum(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()

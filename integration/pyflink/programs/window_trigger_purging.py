"""A purging event-time trigger and a count trigger on time windows: what is left at the end of a window."""

# compare: sorted
# run: drill

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import CountTrigger, EventTimeTrigger, PurgingTrigger, TumblingEventTimeWindows

EVENTS = [("a", 10), ("a", 20), ("b", 30), ("a", 40), ("a", 150), ("b", 160), ("b", 170)]


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield f"{key},{context.window()},{[element[1] for element in elements]}"

    def clear(self, context):
        pass


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    events = env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.LONG()]))
    keyed = events.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    ).key_by(lambda e: e[0], Types.STRING())
    for label, trigger in {
        "event_time": EventTimeTrigger.create(),
        "purging": PurgingTrigger.of(EventTimeTrigger.create()),
        "count": CountTrigger.of(2),
        "purging_count": PurgingTrigger.of(CountTrigger.of(2)),
    }.items():
        windows = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(100))).trigger(trigger)
        windows.process(Show(), Types.STRING()).print(label)
    env.execute()


if __name__ == "__main__":
    main()

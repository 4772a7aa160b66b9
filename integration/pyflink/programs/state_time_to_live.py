"""State with a long time to live behaves as state without one; all ways to configure it are accepted."""

# compare: per-key
# run: gate

from pyflink.common import Time, Types
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import (  # fmt: skip
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)


class Track(KeyedProcessFunction):
    def open(self, runtime_context):
        on_write = (
            StateTtlConfig.new_builder(Time.hours(1))
            .set_update_type(StateTtlConfig.UpdateType.OnCreateAndWrite)
            .set_state_visibility(StateTtlConfig.StateVisibility.NeverReturnExpired)
            .build()
        )
        on_read = (
            StateTtlConfig.new_builder(Time.days(1))
            .update_ttl_on_read_and_write()
            .return_expired_if_not_cleaned_up()
            .use_processing_time()
            .cleanup_full_snapshot()
            .cleanup_incrementally(10, True)
            .cleanup_in_rocksdb_compact_filter(1000)
            .build()
        )
        last = ValueStateDescriptor("last", Types.INT())
        last.enable_time_to_live(on_write)
        items = ListStateDescriptor("items", Types.INT())
        items.enable_time_to_live(on_read)
        counts = MapStateDescriptor("counts", Types.INT(), Types.INT())
        counts.enable_time_to_live(on_write)
        total = ReducingStateDescriptor("total", lambda a, b: a + b, Types.INT())
        total.enable_time_to_live(on_read)
        self._last = runtime_context.get_state(last)
        self._items = runtime_context.get_list_state(items)
        self._counts = runtime_context.get_map_state(counts)
        self._total = runtime_context.get_reducing_state(total)

    def process_element(self, value, ctx):
        key, number = value
        before = self._last.value()
        self._last.update(number)
        self._items.add(number)
        self._counts.put(number, (self._counts.get(number) or 0) + 1)
        self._total.add(number)
        yield f"{key},{before},{list(self._items)},{sorted(self._counts.items())},{self._total.get()}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    events = [("a", 1), ("b", 5), ("a", 2), ("a", 1), ("b", 5)]
    env.from_collection(events).key_by(lambda e: e[0]).process(Track()).print()
    env.execute()


if __name__ == "__main__":
    main()

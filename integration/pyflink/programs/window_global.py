"""GlobalWindows never fire by themselves; with a count trigger they do, and keep or purge their elements."""

# compare: per-key
# key: ^(\w+> \(?'?\w+)
# run: drill

from pyflink.common import Types
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import CountTrigger, GlobalWindows, PurgingTrigger


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        window = context.window()
        yield f"{key},{window},{window.max_timestamp()},{[element[1] for element in elements]}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    events = [("a", number) for number in range(1, 6)] + [("b", 1), ("b", 2), ("c", 1)]
    keyed = env.from_collection(events, Types.TUPLE([Types.STRING(), Types.INT()])).key_by(
        lambda e: e[0], Types.STRING()
    )
    keyed.window(GlobalWindows.create()).process(Show(), Types.STRING()).print("never")
    counted = keyed.window(GlobalWindows.create()).trigger(CountTrigger.of(2))
    counted.process(Show(), Types.STRING()).print("count")
    purged = keyed.window(GlobalWindows.create()).trigger(PurgingTrigger.of(CountTrigger.of(2)))
    purged.process(Show(), Types.STRING()).print("purging")
    env.execute()


if __name__ == "__main__":
    main()

"""Processing-time windows that are still open when the input ends emit nothing."""

# compare: sorted
# run: drill

from pyflink.common import Time, Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.window import ProcessingTimeSessionWindows


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    pair = Types.TUPLE([Types.STRING(), Types.LONG()])
    keyed = env.from_collection([("a", 10), ("b", 110), ("a", 5)], pair).key_by(
        lambda e: e[0], Types.STRING()
    )
    windows = keyed.window(ProcessingTimeSessionWindows.with_gap(Time.hours(1)))
    windows.reduce(lambda a, b: (a[0], a[1] + b[1])).print("windows")
    keyed.reduce(lambda a, b: (a[0], a[1] + b[1])).print("running")
    env.execute()


if __name__ == "__main__":
    main()

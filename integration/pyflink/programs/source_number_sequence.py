"""The number sequence source, both ends included, read by two subtasks."""

# compare: sorted
# run: drill

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.number_seq import NumberSequenceSource


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    source = NumberSequenceSource(5, 25)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
    numbers.map(lambda n: n * n, Types.LONG()).print()
    env.execute()


if __name__ == "__main__":
    main()

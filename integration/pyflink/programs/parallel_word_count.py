"""Word count with two subtasks: counts of one word rise in order."""

# compare: per-key
# run: gate

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

LINES = ["the cat", "the dog and the cat", "a dog", "the end"]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    pair = Types.TUPLE([Types.STRING(), Types.INT()])
    words = env.from_collection(LINES, type_info=Types.STRING()).flat_map(
        lambda line: line.split(), Types.STRING()
    )
    counts = words.map(lambda word: (word, 1), pair).key_by(lambda pair: pair[0], Types.STRING())
    counts.reduce(lambda a, b: (a[0], a[1] + b[1])).print()
    env.execute()


if __name__ == "__main__":
    main()

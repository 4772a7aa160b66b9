"""flat_map takes lists, generators, ranges and nothing at all."""

# compare: exact
# run: drill

from pyflink.common import Types
from pyflink.datastream import FlatMapFunction, StreamExecutionEnvironment


class Words(FlatMapFunction):
    def flat_map(self, value):
        for word in value.split():
            if word != "skip":
                yield word.lower()


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    lines = env.from_collection(["To be or", "skip", "NOT to be", ""], type_info=Types.STRING())
    words = lines.flat_map(Words(), output_type=Types.STRING())
    words.flat_map(lambda word: [word, word.upper()] if len(word) > 2 else []).flat_map(
        lambda w: range(len(w))
    ).print()
    env.execute()


if __name__ == "__main__":
    main()

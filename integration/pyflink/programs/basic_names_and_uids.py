"""Names, uids, descriptions, chaining and buffers change nothing in the result."""

# compare: exact
# run: drill

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.set_max_parallelism(64)
    env.set_buffer_timeout(10)
    stream = (
        env.from_collection([1, 2, 3], type_info=Types.INT())
        .name("numbers")
        .uid("source")
        .map(lambda n: n + 1, Types.INT())
        .name("plus one")
        .uid("map")
        .set_description("adds one")
        .filter(lambda n: n > 2)
        .start_new_chain()
        .map(lambda n: n * 2, Types.INT())
        .disable_chaining()
        .set_buffer_timeout(5)
        .map(lambda n: n, Types.INT())
        .set_max_parallelism(8)
        .force_non_parallel()
    )
    print(stream.map(lambda n: n).name("last").get_name())
    stream.print().name("sink").uid("sink")
    print(env.get_parallelism(), env.get_max_parallelism(), env.get_buffer_timeout())
    env.execute()


if __name__ == "__main__":
    main()

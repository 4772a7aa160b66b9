"""execute_and_collect gives Python objects back, here of a stream without types.

A None that a Python operator returns as the whole value of an element ends the job of Apache PyFlink with a
NullPointerException in the next Java operator, so there is none here.
"""

# compare: exact
# run: drill

from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    values = [1, "two", 3.5, (4, None), [5], {"six": 6}, {7}, True, b"eight"]
    stream = env.from_collection(values).map(lambda v: v)
    with stream.execute_and_collect() as results:
        for value in results:
            print(type(value).__name__, repr(value))
    print(stream.execute_and_collect(limit=3))
    print(stream.execute_and_collect("named", limit=100) == values)


if __name__ == "__main__":
    main()

"""A function is pickled when it is applied: changing the object afterwards changes nothing in the job."""

# compare: exact

from pyflink.datastream import MapFunction, StreamExecutionEnvironment


class Add(MapFunction):
    def __init__(self, amount):
        self.amount = amount

    def map(self, value):
        self.amount += 1
        return value + self.amount


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    add = Add(10)
    mapped = env.from_collection([100, 200, 300]).map(add)
    add.amount = 50
    mapped.print()
    env.execute()
    print("here:", add.amount)


if __name__ == "__main__":
    main()

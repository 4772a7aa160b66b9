"""Objects of the program's own classes in from_collection; pickled by reference to the program's module."""

# compare: exact
# run: drill

import dataclasses

from pyflink.datastream import StreamExecutionEnvironment


@dataclasses.dataclass
class Order:
    item: str
    amount: int


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    orders = env.from_collection([Order("tea", 2), Order("milk", 1)])
    orders.filter(lambda order: order.amount > 1).print()
    orders.map(lambda order: Order(order.item.upper(), order.amount)).map(lambda order: order.item).print()
    env.execute()


if __name__ == "__main__":
    main()

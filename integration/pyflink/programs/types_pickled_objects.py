"""Objects of any class, sets, complex numbers, functions: pickled between operators, printed with str()."""

# compare: exact
# run: gate

import dataclasses
import enum

from pyflink.datastream import StreamExecutionEnvironment


@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    y: float = 0.5


class Colour(enum.Enum):
    RED = 1


class Quiet:
    def __init__(self, value):
        self.value = value

    def __str__(self):
        return f"quiet {self.value}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection([1, 2])
    numbers.map(lambda n: Point(n)).map(lambda p: dataclasses.replace(p, y=p.y + p.x)).print()
    env.execute()
    numbers.map(lambda n: (Colour.RED, n, frozenset([n]), complex(n, 1))).print()
    env.execute()
    numbers.map(lambda n: Quiet(n)).rebalance().map(lambda q: Quiet(q.value * 10)).print()
    env.execute()
    numbers.map(lambda n: (lambda m: n + m)).rebalance().map(lambda f: f(5)).print()
    env.execute()


if __name__ == "__main__":
    main()

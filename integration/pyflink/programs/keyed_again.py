"""key_by after key_by, with other keys; state belongs to the last ones."""

# compare: sorted
# run: drill

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

SALE = Types.TUPLE([Types.STRING(), Types.STRING(), Types.INT()])


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    sales = env.from_collection(
        [("x", "tea", 1), ("y", "tea", 2), ("x", "milk", 4), ("y", "tea", 8), ("x", "tea", 16)],
        type_info=SALE,
    )
    per_shop = sales.key_by(lambda s: s[0], Types.STRING()).reduce(lambda a, b: (a[0], "all", a[2] + b[2]))
    per_shop.print("shop")
    sales.key_by(lambda s: s[0]).key_by(lambda s: s[1]).reduce(lambda a, b: ("all", a[1], a[2] + b[2])).print(
        "item"
    )
    # the sum of running sums: each update of a shop is added
    per_shop.key_by(lambda s: s[1] == "all").reduce(lambda a, b: ("-", "-", a[2] + b[2])).filter(
        lambda s: False
    ).print()
    env.execute()


if __name__ == "__main__":
    main()

"""How values of basic types are printed: by Java, so true, 1.0E10, NaN; floats as short as they can be."""

# compare: sorted
# run: drill

import decimal

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

CASES = {
    "boolean": (Types.BOOLEAN(), [True, False]),
    "byte": (Types.BYTE(), [-128, 127]),
    "short": (Types.SHORT(), [-32768, 300]),
    "int": (Types.INT(), [2147483647, -1]),
    "long": (Types.LONG(), [9223372036854775807]),
    "float": (Types.FLOAT(), [0.1, 1.0, 16777216.0, 1e10, 1e-4]),
    "double": (Types.DOUBLE(), [0.1, 0.1 + 0.2, 1.0, -0.0, 1e6, 1e7, 1e-3, 1e-4, 123456789.125, 1e300]),
    "special": (Types.DOUBLE(), [float("nan"), float("inf"), float("-inf")]),
    "decimal": (
        Types.BIG_DEC(),
        [decimal.Decimal("12.3400"), decimal.Decimal("-0.001"), decimal.Decimal("1E+3")],
    ),
    "string": (Types.STRING(), ["", "a b", "quote ' \"", "ünïcode", "🙂"]),
}


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    for label, (type_info, values) in CASES.items():
        env.from_collection(values).map(lambda v: v, type_info).print(label)
    env.execute()


if __name__ == "__main__":
    main()

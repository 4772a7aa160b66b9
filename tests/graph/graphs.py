"""Small stream graphs for tests."""

from collections.abc import Sequence

from yarnflow.graph import operators as o
from yarnflow.graph.closures import Closure
from yarnflow.graph.connectors import lookups, sinks, sources
from yarnflow.graph.generation.generator import generate_stream_graph
from yarnflow.graph.job_graph import ShipStrategy
from yarnflow.graph.schema import Field, Schema
from yarnflow.graph.stream_graph import Definition, GraphSettings, Input, StreamGraph, Transformation

SCHEMA = Schema((Field("a", "int"),))
KEY = o.Key(("a",), ("a",))
WINDOW = o.Window(o.WindowKind.TUMBLING, size_ms=1000)
CLOSURE = Closure(b"", "f", "job.py:1")
SOURCE = sources.RateSource(1)
PRINT = sinks.PrintSink()
ELEMENTS = o.ElementOperator(o.ElementKind.MAP, CLOSURE)
KEYED_ELEMENTS = o.ElementOperator(
    o.ElementKind.KEYED_PROCESS, CLOSURE, (o.ElementInput(CLOSURE),), True, (("late", None),)
)
LATE = o.SideOutput("late")
PARTITION = o.PartitionCustom(CLOSURE)
BY_KEY = o.PartitionByKey(CLOSURE)
NATIVE = o.SelectOperator(("a",))
TIMES = o.AssignTimestamps("a", 0)
PYTHON = o.PythonOperator(o.PythonKind.MAP, CLOSURE)
LOOKUP = o.LookupJoin(
    lookups.JdbcLookup(
        Schema((Field("name", "string"), Field("city", "string"))), "shop.people",
        "jdbc:mysql://ann:pw@db/shop?password=pw", "ann", "pw",
    ),
    (("id", "id"), ("town", "city_id")),
    True,
)  # fmt: skip
RUNNING = o.RunningAggregate(KEY, ("sum(a) AS b",))
REDUCE = o.KeyedReduce(KEY, CLOSURE)
WINDOWED = o.WindowAggregate(KEY, WINDOW, ("sum(a) AS b",))
WINDOW_FUNCTION = o.WindowProcess(KEY, WINDOW, o.WindowFunctionKind.PROCESS, CLOSURE)
UNION = o.UnionOperator()
SQL = o.SqlOperator("SELECT a FROM t", ("t",))
SQL_AGGREGATE = o.SqlOperator("SELECT a, count(*) AS n FROM t GROUP BY a", ("t",), True, True)


class Program:
    """Transformations in order of their calls; line n of job.py made the n-th."""

    def __init__(self) -> None:
        self.transformations: list[Transformation] = []

    def add(
        self,
        operator: o.Operator,
        *inputs: Transformation,
        strategy: ShipStrategy = ShipStrategy.FORWARD,
        define: Definition | None = None,
    ) -> Transformation:
        name = type(operator).__name__
        line = len(self.transformations) + 1
        made = Transformation(
            name,
            name.lower(),
            f"job.py:{line}",
            define or (lambda schemas: (operator, SCHEMA)),
            tuple(Input(source, strategy) for source in inputs),
        )
        self.transformations.append(made)
        return made

    def chain(self, *operators: o.Operator) -> list[Transformation]:
        """A straight line of operators."""
        made: list[Transformation] = []
        for operator in operators:
            keyed = isinstance(
                operator, (o.RunningAggregate, o.KeyedReduce, o.WindowAggregate, o.WindowProcess)
            )
            strategy = ShipStrategy.HASH if keyed else ShipStrategy.FORWARD
            made.append(self.add(operator, *made[-1:], strategy=strategy))
        return made

    def build(self, settings: GraphSettings = GraphSettings()) -> StreamGraph:
        return generate_stream_graph(self.transformations, settings)


def straight(operators: Sequence[o.Operator]) -> StreamGraph:
    """The graph of a straight line of operators."""
    program = Program()
    program.chain(*operators)
    return program.build()

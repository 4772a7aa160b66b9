"""What is known of a SQL query over streams before Spark sees it."""

from __future__ import annotations

import pytest

from yarnflow.errors import GraphError, InvalidExpression, SchemaError, UnknownField
from yarnflow.graph.schema import Field, Schema
from yarnflow.graph.sql.queries import Query, looked_at

A = Schema((Field("k", "bigint"), Field("Ts", "timestamp"), Field("price", "double")), event_time="Ts")
#: its event time is no field of its own
B = Schema((Field("k", "bigint"), Field("n", "int")), event_time="event_time")
C = Schema((Field("k", "bigint"), Field("m", "int")))
VIEWS = {"a": A, "b": B, "c": C}


def looked(query: str, *names: str) -> Query:
    return looked_at(query, {name: VIEWS[name] for name in names})


def test_fields_of_the_result() -> None:
    assert looked("SELECT * FROM c", "c").schema.fields == C.fields
    assert looked("SELECT K, m c, count(*) AS n FROM c GROUP BY ALL", "c").schema.names == ("K", "c", "n")
    assert looked("WITH u AS (SELECT m FROM c) SELECT * FROM u", "c").schema.names == ("m",)
    assert looked("SELECT * FROM parquet.`/x`").schema == Schema(())
    assert looked("SELECT id, id * 2 AS twice FROM range(3)").schema.names == ("id", "twice")
    # the view has it beside its fields
    assert looked("SELECT * FROM b", "b").schema.names == ("k", "n", "event_time")


@pytest.mark.parametrize(
    ("query", "error", "part"),
    [
        ("SELECT foo FROM a", UnknownField, "'foo'"),
        ("SELECT count(*) FROM a", SchemaError, "AS name"),
        ("DROP TABLE a", InvalidExpression, "no query"),
        ("SELECT 1 AS one", InvalidExpression, "'a' is not used"),
        ("SELECT * FROM other", InvalidExpression, "'a' is not used in the query, which reads other"),
        ("SELECT FROM WHERE", InvalidExpression, "not valid SQL"),
        ("SELECT k FROM a ORDER BY k", InvalidExpression, "ORDER BY k: a stream cannot be sorted"),
        (
            "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS r FROM a) WHERE r "
            "= 1",
            InvalidExpression,
            "drop_duplicates",
        ),
        ("SELECT sum(k) OVER (ORDER BY ts) AS s FROM a", InvalidExpression, "OVER is not possible"),
        ("SELECT n, count(*) AS m FROM (SELECT k, count(*) AS n FROM a GROUP BY k) GROUP BY n",
         InvalidExpression, "results that change"),
    ],
)  # fmt: skip
def test_refused(query: str, error: type[GraphError], part: str) -> None:
    with pytest.raises(error) as caught:
        looked(query, "a")
    assert part in str(caught.value)


_RANKED = "OVER (PARTITION BY k ORDER BY n DESC)"


@pytest.mark.parametrize("rank", ["ROW_NUMBER()", "RANK()", "DENSE_RANK()"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM (SELECT *, {rank} {over} AS r FROM a) WHERE r <= 3",
        "WITH ranked AS (SELECT k, {rank} {over} AS r FROM a) SELECT k FROM ranked WHERE r <= 3",
        "SELECT k, n FROM a QUALIFY {rank} {over} <= 3",
        "SELECT * FROM (SELECT k, n, {rank} {over} AS r FROM (SELECT k, count(*) AS n FROM a GROUP BY k)) "
        "WHERE r <= 3",
    ],
)
def test_the_largest_of_each_key_are_refused_with_what_to_write(query: str, rank: str) -> None:
    with pytest.raises(InvalidExpression) as caught:
        looked(query.format(rank=rank, over=_RANKED), "a")
    assert str(caught.value) == (
        f"{rank} OVER is not possible on a stream; for the first of each key call drop_duplicates(…), for "
        "the largest of each window GROUP BY window(…) and take max_by(x, y), or for the n largest "
        "slice(sort_array(collect_list(struct(y, x)), false), 1, n); without windows write a "
        "KeyedProcessFunction"
    )


@pytest.mark.parametrize(
    ("query", "names", "event_time"),
    [
        ("SELECT * FROM a WHERE k > 3", "a", "Ts"),
        ("SELECT k, ts AS t FROM a", "a", "t"),
        ("SELECT k FROM a", "a", None),
        ("SELECT k, CAST(ts AS TIMESTAMP) AS t FROM a", "a", None),
        ("SELECT * EXCEPT (ts) FROM a", "a", None),
        ("SELECT * FROM b", "b", "event_time"),
        ("SELECT k, n, event_time FROM b", "b", "event_time"),
        # a window tells it, under a name that is free
        ("SELECT window, count(*) AS n FROM a GROUP BY window(ts, '1 hour')", "a", "event_time"),
        ("SELECT k, window AS event_time, count(*) AS n FROM a GROUP BY window(ts, '1 hour'), k", "a",
         "event_time_"),
        ("SELECT window.start AS s, count(*) AS n FROM a GROUP BY window(ts, '1 hour')", "a", None),
        ("SELECT window_time(w) AS t, n FROM (SELECT window(ts, '1 hour') AS w, count(*) AS n FROM a "
         "GROUP BY 1)",
         "a", "t"),
        ("SELECT a.k, a.ts, b.event_time FROM a JOIN b ON a.k = b.k AND a.ts = b.event_time", "ab", None),
        ("SELECT a.k, a.ts FROM a JOIN b ON a.k = b.k AND a.ts = b.event_time", "ab", "Ts"),
        ("SELECT a.k, a.ts FROM a JOIN users ON a.k = users.k", "a", "Ts"),
        ("SELECT k, ts FROM a UNION ALL SELECT k, event_time AS ts FROM b", "ab", "Ts"),
        ("SELECT k, ts FROM a UNION ALL SELECT k, current_timestamp() AS ts FROM c", "ac", None),
        ("WITH x AS (SELECT ts AS t FROM a) SELECT t FROM x", "a", "t"),
    ],
)  # fmt: skip
def test_event_time_of_the_result(query: str, names: str, event_time: str | None) -> None:
    found = looked(query, *names).schema.event_time
    assert (found or "").lower() == (event_time or "").lower()


HOURLY = "GROUP BY window(ts, '1 hour')"
WITHIN = "b.event_time BETWEEN a.ts AND a.ts + INTERVAL 1 MINUTE"


@pytest.mark.parametrize(
    ("query", "names", "stateful", "changes", "keeps"),
    [
        ("SELECT k FROM a", "a", False, False, ""),
        ("SELECT a.k FROM a JOIN users ON a.k = users.k", "a", False, False, ""),
        (f"SELECT count(*) AS n FROM a {HOURLY}", "a", True, False, ""),
        (f"SELECT k, count(*) AS n FROM a {HOURLY}, k", "a", True, False, ""),
        ("SELECT k, count(*) AS n FROM a GROUP BY k", "a", True, True, "GROUP BY k keeps every group"),
        # one row is no growing state
        ("SELECT count(*) AS n FROM a", "a", True, True, ""),
        # a window of a column that is no event time
        ("SELECT count(*) AS n FROM c GROUP BY window(timestamp_seconds(m), '1 hour')", "c", True, True,
         "GROUP BY"),
        ("SELECT session_window.start AS s, k, count(*) AS n FROM a "
         "GROUP BY session_window(ts, '1 hour'), k",
         "a", True, False, ""),
        ("SELECT DISTINCT k FROM a", "a", True, True, "DISTINCT keeps every row"),
        ("SELECT DISTINCT k, ts FROM a", "a", True, False, ""),
        ("SELECT k FROM a UNION SELECT k FROM c", "ac", True, True, "UNION without ALL"),
        ("SELECT a.k FROM a JOIN b ON a.k = b.k", "ab", True, False, "the join with b keeps both"),
        (f"SELECT a.k FROM a JOIN b ON a.k = b.k AND {WITHIN}", "ab", True, False, ""),
        (f"SELECT a.k FROM a LEFT JOIN b ON a.k = b.k AND {WITHIN}", "ab", True, False, ""),
        (f"SELECT a.k FROM a JOIN b ON a.k = b.k WHERE {WITHIN}", "ab", True, False, ""),
        # one of them may be ahead by any time
        ("SELECT a.k FROM a JOIN b ON a.k = b.k AND b.event_time >= a.ts", "ab", True, False, "the join"),
        ("SELECT a.k FROM a JOIN b ON a.k = b.k AND b.event_time >= a.ts AND a.ts > b.event_time "
         "- INTERVAL 1 HOUR",
         "ab", True, False, ""),
        ("SELECT a.k FROM a JOIN c ON a.k = c.k AND a.ts = timestamp_seconds(c.m)", "ac", True, False,
         "the join"),
        ("SELECT x.k FROM (SELECT k, window(ts, '1 hour') AS w FROM a) x "
         "JOIN (SELECT k, window(event_time, '1 hour') AS w FROM b) y ON x.k = y.k AND x.w = y.w",
         "ab", True, False, ""),
    ],
)  # fmt: skip
def test_state_and_results(query: str, names: str, stateful: bool, changes: bool, keeps: str) -> None:
    facts = looked(query, *names).facts
    assert (facts.stateful, facts.changes, bool(facts.keeps)) == (stateful, changes, bool(keeps))
    assert keeps in "".join(facts.keeps)


TUMBLE = "TABLE(TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '10' MINUTES))"


@pytest.mark.parametrize(
    ("query", "spark"),
    [
        (
            f"SELECT window_start, window_end, sum(price) AS s FROM {TUMBLE} GROUP BY window_start, "
            "window_end",
            "SELECT flink_window.start AS window_start, flink_window.end AS window_end, SUM(price) AS s FROM "
            "(SELECT *, WINDOW(ts, '10 minutes') AS flink_window FROM a) AS a GROUP BY flink_window",
        ),
        (
            "SELECT k, window_end AS e, window_time, count(*) AS n FROM "
            "HOP(TABLE a, DESCRIPTOR(ts), INTERVAL '5' MINUTES, INTERVAL '1' HOUR) AS h "
            "GROUP BY k, window_start, window_end, window_time",
            "SELECT k, e, WINDOW_TIME(flink_window) AS window_time, n FROM (SELECT k, flink_window.end AS e, "
            "COUNT(*) AS n, flink_window FROM (SELECT *, WINDOW(ts, '1 hour', '5 minutes') AS "
            "flink_window FROM a) "
            "AS h GROUP BY k, flink_window) AS windows",
        ),
        (
            "SELECT k, count(*) AS n FROM TABLE(SESSION(TABLE a PARTITION BY k, DESCRIPTOR(ts), INTERVAL "
            "'1' HOUR)) "
            "GROUP BY k, window_start, window_end",
            "SELECT k, COUNT(*) AS n FROM (SELECT *, SESSION_WINDOW(ts, '1 hour') AS flink_window FROM a) "
            "AS a "
            "GROUP BY k, flink_window",
        ),
    ],
)
def test_windows_as_flink_writes_them(query: str, spark: str) -> None:
    found = looked(query, "a")
    assert found.text.replace("minute'", "minutes'") == spark.replace("minute'", "minutes'")
    assert (found.facts.stateful, found.facts.changes, found.facts.keeps) == (True, False, ())


@pytest.mark.parametrize(
    ("query", "part"),
    [
        (TUMBLE.replace("TUMBLE(", "CUMULATE(").replace("MINUTES", "MINUTES, INTERVAL '1' HOUR"), "CUMULATE"),
        (TUMBLE.replace("DESCRIPTOR(ts)", "ts"), "DESCRIPTOR(column)"),
        (TUMBLE.replace("INTERVAL '10' MINUTES", "'10 minutes'"), "INTERVAL '10' MINUTES"),
    ],
)
def test_windows_that_are_not_possible(query: str, part: str) -> None:
    with pytest.raises(InvalidExpression, match="is not possible here; write") as caught:
        looked(f"SELECT window_start FROM {query} GROUP BY window_start, window_end", "a")
    assert part in str(caught.value)


def test_older_windows_of_group_by_are_refused_by_name() -> None:
    with pytest.raises(InvalidExpression, match=r"TUMBLE.* of GROUP BY is not possible here; write GROUP"):
        looked("SELECT count(*) AS n FROM a GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)", "a")

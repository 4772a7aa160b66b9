"""The queries in SQL, as DuckDB computes them from all events at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

#: has a program for each query
PROGRAMS: Final = Path(__file__).parent / "programs"


@dataclass(frozen=True)
class Query:
    """One query of Nexmark.

    Attributes
    ----------
    name : str
        ``q0`` … ; the program is ``programs/<name>.py``.
    title : str
    sql : str
        Its result over the tables ``person``, ``auction`` and ``bid``.
    counted : str
        What counts of the rows that a program wrote, the table ``written``.
    """

    name: str
    title: str
    sql: str
    counted: str = "SELECT * FROM written"


#: the table ``winner`` in front of queries 4 and 9
_WINNERS: Final = """
    WITH winner AS (
        SELECT auction.*, bid.auction, bidder, price, bid.time_ms AS bid_time_ms, bid.extra AS bid_extra
        FROM auction JOIN bid ON auction.id = bid.auction
            AND bid.time_ms BETWEEN auction.time_ms AND auction.expires_ms
        QUALIFY row_number() OVER (PARTITION BY auction.id ORDER BY price DESC, bid.time_ms, bidder) = 1
    )
"""

QUERIES: Final = (
    Query("q0", "pass through", "SELECT auction, bidder, price, time_ms, extra FROM bid"),
    Query(
        "q1",
        "currency conversion",
        "SELECT auction, bidder, (0.908 * price)::DECIMAL(23, 3) AS price, time_ms, extra FROM bid",
    ),
    Query("q2", "selection", "SELECT auction, price FROM bid WHERE auction % 123 = 0"),
    Query(
        "q3",
        "local item suggestion",
        """
        SELECT name, city, state, auction.id
        FROM auction JOIN person ON seller = person.id
        WHERE category = 10 AND state IN ('OR', 'ID', 'CA')
        """,
    ),
    Query(
        "q4",
        "average price of a category",
        f"""
        {_WINNERS}
        SELECT category, count(*) AS auctions, (sum(price) // count(*))::BIGINT AS average
        FROM winner GROUP BY category
        """,
        """
        SELECT category, count(*) AS auctions, arg_max(average, auctions) AS average
        FROM written GROUP BY category
        """,
    ),
    Query(
        "q5",
        "hot items",
        """
        WITH counts AS (
            SELECT auction, count(*) AS num, (time_ms // 2000 - later) * 2000 AS start_ms
            FROM bid, range(5) AS slides(later) GROUP BY auction, start_ms
        )
        SELECT auction, num, start_ms FROM counts QUALIFY num = max(num) OVER (PARTITION BY start_ms)
        """,
    ),
    Query(
        "q7",
        "highest bid",
        """
        SELECT auction, bidder, price, time_ms, extra FROM bid
        QUALIFY price = max(price) OVER (PARTITION BY time_ms // 10000)
        """,
    ),
    Query(
        "q8",
        "monitor new users",
        """
        SELECT DISTINCT person.id, name, person.time_ms // 10000 * 10000 AS start_ms
        FROM person JOIN auction ON person.id = seller AND person.time_ms // 10000 = auction.time_ms // 10000
        """,
    ),
    Query("q9", "winning bids", f"{_WINNERS} SELECT * FROM winner"),
    Query(
        "q11",
        "user sessions",
        """
        WITH begun AS (
            SELECT bidder, time_ms,
                time_ms - lag(time_ms, 1, 0) OVER (PARTITION BY bidder ORDER BY time_ms) > 10000 AS first
            FROM bid
        ), numbered AS (
            SELECT bidder, time_ms,
                sum(first::INT) OVER (PARTITION BY bidder ORDER BY time_ms) AS session
            FROM begun
        )
        SELECT bidder, count(*) AS bids, min(time_ms) AS start_ms, max(time_ms) + 10000 AS end_ms
        FROM numbered GROUP BY bidder, session
        """,
    ),
)

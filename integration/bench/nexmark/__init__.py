"""``scripts/bench nexmark``: queries of Nexmark on yarnflow.

Nexmark is a benchmark of streams: persons open auctions and bid for them.  Queries 0 to 5, 7, 8, 9 and 11
are programs in ``programs/``, each as a user would write it.  All read the same JSON files of events, made
here from a seed, and write CSV files.  What they wrote is compared, row by row, with what DuckDB computes
from the same files in SQL, before anything is said about their time.  Records per second are events of the
steady part, as in ``integration.bench.pyflink``: each query runs on a small and on a large input.

Queries mean what the SQL of https://github.com/nexmark/nexmark means once all events have come, with
these differences:

- Query 4 writes a row for each auction that has ended, with the average up to then.  The last one of a
  category counts, as with Flink's updates.
- Query 7 takes bids of a window of ten seconds; a bid at the first instant of the next window is not
  one of them.  (Flink's SQL takes it if its price is the same.)
- Query 9 decides between equal prices by time, and then by bidder.
"""

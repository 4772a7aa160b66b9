"""Query 9: the winning bid of each auction."""

import sys

from nexmark_tables import Tables
from nexmark_winners import winning_bids

from yarnflow.api.common import Types

AUCTION = {
    "id": Types.LONG(),
    "item": Types.STRING(),
    "description": Types.STRING(),
    "initial_bid": Types.LONG(),
    "reserve": Types.LONG(),
    "time_ms": Types.LONG(),
    "expires_ms": Types.LONG(),
    "seller": Types.LONG(),
    "category": Types.LONG(),
    "extra": Types.STRING(),
}
BID = {
    "auction": Types.LONG(),
    "bidder": Types.LONG(),
    "price": Types.LONG(),
    "time_ms": Types.LONG(),
    "extra": Types.STRING(),
}
WINNER = Types.ROW_NAMED(
    [*AUCTION, *(f"bid_{name}" for name in BID)], [*AUCTION.values(), *BID.values()]
)


def main(out, events):
    tables = Tables(out, events)
    tables.write(winning_bids(tables.auctions(*AUCTION), tables.bids(*BID), WINNER), "q9")


if __name__ == "__main__":
    main(*sys.argv[1:])

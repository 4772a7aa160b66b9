"""Query 4: the average of the winning bids of each category, anew with each auction that ends."""

import sys

from nexmark_tables import Tables
from nexmark_winners import winning_bids

from yarnflow.api.common import Row, Types
from yarnflow.api.datastream import KeyedProcessFunction
from yarnflow.api.datastream.state import ValueStateDescriptor

AUCTION = ["id", "category", "time_ms", "expires_ms"]
BID = ["auction", "bidder", "price", "time_ms"]
WINNER = Types.ROW_NAMED([*AUCTION, *(f"bid_{name}" for name in BID)], [Types.LONG()] * 8)
AVERAGE = Types.ROW_NAMED(["category", "auctions", "average"], [Types.LONG()] * 3)


class Average(KeyedProcessFunction):
    def open(self, runtime_context):
        self.auctions = runtime_context.get_state(ValueStateDescriptor("auctions", Types.LONG()))
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, winner, ctx):
        auctions = (self.auctions.value() or 0) + 1
        total = (self.total.value() or 0) + winner.bid_price
        self.auctions.update(auctions)
        self.total.update(total)
        yield Row(winner.category, auctions, total // auctions)


def main(out, events):
    tables = Tables(out, events)
    winners = winning_bids(tables.auctions(*AUCTION), tables.bids(*BID), WINNER)
    # fields have their names behind the exchange only
    category = AUCTION.index("category")
    averages = winners.key_by(lambda winner: winner[category], Types.LONG()).process(Average(), AVERAGE)
    tables.write(averages, "q4")


if __name__ == "__main__":
    main(*sys.argv[1:])

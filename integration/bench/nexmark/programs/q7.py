"""Query 7: the highest bids of each ten seconds."""

import sys

from nexmark_tables import Tables, timed

from yarnflow import api
from yarnflow.api.common import Row, Types
from yarnflow.api.datastream import AggregateFunction
from yarnflow.api.datastream.functions import ProcessAllWindowFunction

BID = ["auction", "bidder", "price", "time_ms", "extra"]
HIGHEST = Types.ROW_NAMED(BID, [Types.LONG()] * 4 + [Types.STRING()])


class Highest(AggregateFunction):
    """The bids so far that none is above."""

    def create_accumulator(self):
        return []

    def add(self, bid, highest):
        if not highest or bid.price > highest[0].price:
            return [bid]
        return [*highest, bid] if bid.price == highest[0].price else highest

    def get_result(self, highest):
        return highest

    def merge(self, one, other):
        price = max(bid.price for bid in one + other)
        return [bid for bid in one + other if bid.price == price]


class OneByOne(ProcessAllWindowFunction):
    def process(self, context, results):
        for highest in results:
            for bid in highest:
                yield Row(*bid)


def main(out, events):
    tables = Tables(out, events)
    highest = (
        timed(tables.bids(*BID))
        .window_all(api.TumblingEventTimeWindows.of("10 seconds"))
        .aggregate(Highest(), OneByOne(), output_type=HIGHEST)
    )
    tables.write(highest, "q7")


if __name__ == "__main__":
    main(*sys.argv[1:])

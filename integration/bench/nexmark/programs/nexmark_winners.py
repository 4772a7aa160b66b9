"""The highest bid of each auction, for queries 4 and 9."""

from nexmark_tables import timed

from yarnflow.api.common import Row, Types
from yarnflow.api.datastream import KeyedCoProcessFunction
from yarnflow.api.datastream.state import ListStateDescriptor, ValueStateDescriptor


class WinningBids(KeyedCoProcessFunction):
    """Gives the fields of an auction and of its best bid when the auction has ended."""

    def open(self, runtime_context):
        self.auction = runtime_context.get_state(
            ValueStateDescriptor("auction", Types.PICKLED_BYTE_ARRAY())
        )
        self.best = runtime_context.get_state(ValueStateDescriptor("best", Types.PICKLED_BYTE_ARRAY()))
        # bids that came before their auction
        self.early = runtime_context.get_list_state(
            ListStateDescriptor("early", Types.PICKLED_BYTE_ARRAY())
        )

    def process_element1(self, auction, ctx):
        self.auction.update(auction)
        for bid in self.early.get():
            self.offer(auction, bid)
        self.early.clear()
        ctx.timer_service().register_event_time_timer(auction.expires_ms)

    def process_element2(self, bid, ctx):
        auction = self.auction.value()
        if auction is not None:
            self.offer(auction, bid)
        else:
            self.early.add(bid)
            ctx.timer_service().register_event_time_timer(bid.time_ms)

    def offer(self, auction, bid):
        if auction.time_ms <= bid.time_ms <= auction.expires_ms:
            best = self.best.value()
            if best is None or rank(bid) < rank(best):
                self.best.update(bid)

    def on_timer(self, timestamp, ctx):
        auction = self.auction.value()
        if auction is None:
            # an auction that is still to come begins after these bids
            self.early.update([bid for bid in self.early.get() if bid.time_ms > timestamp])
        elif auction.expires_ms == timestamp:
            best = self.best.value()
            if best is not None:
                yield Row(*auction, *best)
            self.auction.clear()
            self.best.clear()


def rank(bid):
    """The lowest one wins."""
    return -bid.price, bid.time_ms, bid.bidder


def winning_bids(auctions, bids, result):
    """One row for each auction that has bids: its fields, then those of its best bid."""
    return (
        timed(auctions)
        .connect(timed(bids))
        .key_by(lambda auction: auction.id, lambda bid: bid.auction, Types.LONG())
        .process(WinningBids(), result)
    )

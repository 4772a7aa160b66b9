"""Query 3: who sells something of category 10 in Oregon, Idaho or California."""

import sys

from nexmark_tables import Tables

from yarnflow.api.common import Row, Types
from yarnflow.api.datastream import KeyedCoProcessFunction
from yarnflow.api.datastream.state import ListStateDescriptor, ValueStateDescriptor

OFFER = Types.ROW_NAMED(
    ["name", "city", "state", "auction"], [Types.STRING(), Types.STRING(), Types.STRING(), Types.LONG()]
)


class Offers(KeyedCoProcessFunction):
    """Each auction with its seller, whichever of them comes first."""

    def open(self, runtime_context):
        self.seller = runtime_context.get_state(ValueStateDescriptor("seller", Types.PICKLED_BYTE_ARRAY()))
        self.waiting = runtime_context.get_list_state(ListStateDescriptor("waiting", Types.LONG()))

    def process_element1(self, person, ctx):
        self.seller.update((person.name, person.city, person.state))
        for auction in self.waiting.get():
            yield Row(person.name, person.city, person.state, auction)
        self.waiting.clear()

    def process_element2(self, auction, ctx):
        seller = self.seller.value()
        if seller is None:
            self.waiting.add(auction.id)
        else:
            yield Row(*seller, auction.id)


def main(out, events):
    tables = Tables(out, events)
    persons = tables.persons("id", "name", "city", "state").filter("state IN ('OR', 'ID', 'CA')")
    auctions = tables.auctions("id", "seller", "category").filter("category = 10")
    offers = (
        persons.connect(auctions)
        .key_by(lambda person: person.id, lambda auction: auction.seller, Types.LONG())
        .process(Offers(), OFFER)
    )
    tables.write(offers, "q3")


if __name__ == "__main__":
    main(*sys.argv[1:])

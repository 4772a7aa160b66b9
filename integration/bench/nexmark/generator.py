"""Events of Nexmark: made once for each size, the same bytes every time.

Of 50 events the first is a person, the next three are auctions, the others bids.  The shares of hot
auctions, bidders and sellers, the lengths of auctions and the distribution of prices are Nexmark's; texts
and numbers come from our own random numbers.  Each event is a line ``{"event_type": 0 | 1 | 2, "person" |
"auction" | "bid": {…}}``, which may as well be the value of a Kafka message.
"""

from __future__ import annotations

import math
import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

#: of files that are written, and read, at a time: one for each of two subtasks
PARTS: Final = 2
#: a multiple of all windows
START_MS: Final = 1_700_000_000_000

#: of so many events one is a person and three are auctions
_EPOCH: Final = 50
_AUCTIONS: Final = 3
_FIRST_ID: Final = 1_000
_FIRST_CATEGORY: Final = 10
_CATEGORIES: Final = 5
#: auctions that are open at a time, on average
_IN_FLIGHT: Final = 100
#: persons that may bid or sell
_ACTIVE: Final = 1_000
#: ids that may be named before their person or auction came
_LEAD: Final = 10
#: of so many auctions or persons one is hot
_HOT_OF: Final = 100
#: one of so many bids goes to any auction, comes of any bidder; one of so many auctions of any seller
_ANY_AUCTION: Final = 2
_ANY_BIDDER: Final = 4
_ANY_SELLER: Final = 4
#: an event may come so many events before its time
_DISORDER: Final = 100

_STATES: Final = ("AZ", "CA", "ID", "OR", "WA", "WY")
_CITIES: Final = ("Bend", "Boise", "Cheyenne", "Kent", "Phoenix", "Portland", "Redmond", "Seattle")
_FIRST_NAMES: Final = ("Ada", "Ben", "Cleo", "Dora", "Emil", "Fritz", "Gina", "Hugo", "Ines", "Jan")
_LAST_NAMES: Final = ("Abel", "Brandt", "Costa", "Dubois", "Evans", "Fischer", "Greco", "Hansen")


@dataclass(frozen=True)
class Events:
    """Where events are.

    Attributes
    ----------
    count : int
    directory : Path
        Has JSON files only.  Their times of modification say in which order they are read.
    """

    count: int
    directory: Path


def make_events(scratch: Path, count: int, events_per_s: int, files: int) -> Events:
    """Write events to files, unless they are there.

    Parameters
    ----------
    scratch : Path
        The files are in a folder of it.
    count : int
    events_per_s : int
        Of event time; how fast programs read does not depend on it.
    files : int
        A multiple of ``PARTS``.  Each group of ``PARTS`` files has the events that follow those of the group
        before, event by event in turn.
    """
    name = f"nexmark-{count}-{events_per_s}-{files}"
    directory, complete = scratch / name, scratch / f"{name}.complete"
    if not complete.exists():
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        lines = events(count, events_per_s)
        groups = files // PARTS
        # whole seconds, all of them past
        began = int(time.time()) - groups - 1
        for group in range(groups):
            size = count * (group + 1) // groups - count * group // groups
            _write_group(directory, group, (next(lines) for _ in range(size)), began + group)
        complete.touch()
    return Events(count, directory)


def _write_group(directory: Path, group: int, lines: Iterator[str], modified: int) -> None:
    paths = [directory / f"{group:04}-{part}.json" for part in range(PARTS)]
    opened = [open(path, "w", encoding="ascii") for path in paths]
    for number, line in enumerate(lines):
        opened[number % PARTS].write(line + "\n")
    for file, path in zip(opened, paths, strict=True):
        file.close()
        os.utime(path, (modified, modified))


def events(count: int, events_per_s: int, seed: int = 1) -> Iterator[str]:
    """Events as JSON, in the order in which they come."""
    numbers = random.Random(seed)
    kinds = [_person] + [_auction] * _AUCTIONS + [_bid] * (_EPOCH - _AUCTIONS - 1)
    latest = 1 + _DISORDER * 1_000 // events_per_s
    # an auction is open while, on average, so many others begin
    length_ms = _IN_FLIGHT * _EPOCH // _AUCTIONS * 1_000 // events_per_s
    for number in range(count):
        epoch, place = divmod(number, _EPOCH)
        moment = _Moment(
            time_ms=START_MS + number * 1_000 // events_per_s + _below(numbers, latest),
            last_person=epoch,
            last_auction=epoch * _AUCTIONS + min(place, _AUCTIONS) - 1,
            auction_ms=length_ms,
        )
        yield kinds[place](moment, numbers.random)


@dataclass(slots=True)
class _Moment:
    """An event's time, and what there is by then; ids count from 0, and -1 is none."""

    time_ms: int
    last_person: int
    last_auction: int
    auction_ms: int


_Random = Callable[[], float]


def _below(numbers: random.Random, bound: int) -> int:
    return int(numbers.random() * bound)


def _person(moment: _Moment, random: _Random) -> str:
    first = _FIRST_NAMES[int(random() * len(_FIRST_NAMES))]
    last = _LAST_NAMES[int(random() * len(_LAST_NAMES))]
    return (
        f'{{"event_type":0,"person":{{"id":{_FIRST_ID + moment.last_person},"name":"{first} {last}",'
        f'"email":"{first.lower()}@{last.lower()}.example","card":"{int(random() * 10**16):016}",'
        f'"city":"{_CITIES[int(random() * len(_CITIES))]}",'
        f'"state":"{_STATES[int(random() * len(_STATES))]}",'
        f'"time_ms":{moment.time_ms},"extra":"{_text(random, 40)}"}}}}'
    )


def _auction(moment: _Moment, random: _Random) -> str:
    initial = _price(random)
    if int(random() * _ANY_SELLER) > 0:
        seller = moment.last_person // _HOT_OF * _HOT_OF
    else:
        seller = _any_person(moment, random)
    expires_ms = moment.time_ms + 1 + int(random() * max(1, 2 * moment.auction_ms))
    return (
        f'{{"event_type":1,"auction":{{"id":{_FIRST_ID + moment.last_auction},"item":"{_text(random, 20)}",'
        f'"description":"{_text(random, 100)}","initial_bid":{initial},"reserve":{initial + _price(random)},'
        f'"time_ms":{moment.time_ms},"expires_ms":{expires_ms},"seller":{_FIRST_ID + seller},'
        f'"category":{_FIRST_CATEGORY + int(random() * _CATEGORIES)},"extra":"{_text(random, 200)}"}}}}'
    )


def _bid(moment: _Moment, random: _Random) -> str:
    if int(random() * _ANY_AUCTION) > 0:
        auction = moment.last_auction // _HOT_OF * _HOT_OF
    else:
        oldest = max(moment.last_auction - _IN_FLIGHT, 0)
        auction = oldest + int(random() * (moment.last_auction - oldest + 1 + _LEAD))
    if int(random() * _ANY_BIDDER) > 0:
        # the second of a hundred, so that it is no hot seller
        bidder = moment.last_person // _HOT_OF * _HOT_OF + 1
    else:
        bidder = _any_person(moment, random)
    return (
        f'{{"event_type":2,"bid":{{"auction":{_FIRST_ID + auction},"bidder":{_FIRST_ID + bidder},'
        f'"price":{_price(random)},"channel":"channel-{int(random() * 10_000)}",'
        f'"url":"https://auctions.example/item/{_FIRST_ID + auction}",'
        f'"time_ms":{moment.time_ms},"extra":"{_text(random, 40)}"}}}}'
    )


def _any_person(moment: _Moment, random: _Random) -> int:
    persons = moment.last_person + 1
    active = min(persons, _ACTIVE)
    return persons - active + int(random() * (active + _LEAD))


def _price(random: _Random) -> int:
    """In cents, 100 to 100,000,000; the logarithm is uniform."""
    return round(math.pow(10.0, random() * 6.0) * 100.0)


def _text(random: _Random, length: int) -> str:
    """Hexadecimal digits; texts have no characters that CSV would quote."""
    return f"{int(random() * 2.0**52):x}".rjust(13, "0") * (length // 13 + 1)

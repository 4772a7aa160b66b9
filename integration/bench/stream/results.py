"""What an engine wrote, and whether it is what it should be."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from integration.bench.stream.inputs import PARTS, Bids

#: of windows
WINDOW_MS: Final = 10_000


def result_files(directory: Path) -> list[Path]:
    """All files of a sink but hidden ones."""
    return [
        path
        for path in sorted(directory.rglob("*"))
        if path.is_file() and not any(p.startswith((".", "_")) for p in path.relative_to(directory).parts)
    ]


def written(directory: Path) -> Counter[str]:
    """All lines of all files but hidden ones."""
    found: Counter[str] = Counter()
    for path in result_files(directory):
        found.update(path.read_text(encoding="utf-8").splitlines())
    return found


def expected(pipeline: str, bids: Bids) -> Counter[str]:
    """The lines there should be, computed here, record by record."""
    records = _read(bids)
    if pipeline == "windows":
        counts: Counter[tuple[int, int]] = Counter()
        for bid in records:
            counts[bid["auction"], bid["time_ms"] // WINDOW_MS * WINDOW_MS] += 1
        return Counter(f"{auction},{start_ms},{n}" for (auction, start_ms), n in counts.items())
    return Counter(filter(None, map(_PER_RECORD[pipeline], records)))


def _read(bids: Bids) -> Iterator[dict[str, Any]]:
    for part in range(PARTS):
        with open(bids.directory / f"part-{part}.json", encoding="ascii") as lines:
            yield from map(json.loads, lines)


def _filtered(bid: dict[str, Any]) -> str | None:
    return f"{bid['auction']},{bid['bidder']},{bid['price']}" if bid["price"] > 900 else None


def _in_euros(bid: dict[str, Any]) -> str | None:
    euros = bid["price"] * 92 // 100
    return f"{bid['auction']},{bid['bidder']},{euros}" if euros > 828 else None


_PER_RECORD: Final[dict[str, Callable[[dict[str, Any]], str | None]]] = {
    "filter": _filtered,
    "udf": _in_euros,
    "rows": _in_euros,
}

"""Functions of the dashboard's modules, called in a real browser."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from integration.conftest import wait_until
from integration.rest.conftest import Reader
from integration.rest.fixture_server import FixtureServer
from tests.patience import PATIENCE

pytestmark = pytest.mark.may_rerun("a browser draws when it likes")


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("code: message", {"first": "code: message", "python": "", "rest": ""}),
        ("a.B: broken\n\tat x.Y", {"first": "a.B: broken", "python": "", "rest": "at x.Y"}),
        (
            "Traceback (most recent call last):\n  File \"a.py\", line 1\n    x\nKeyError: 'k'",
            {
                "first": "KeyError: 'k'", "rest": "",
                "python": "Traceback (most recent call last):\n  File \"a.py\", line 1\n    x\nKeyError: 'k'",
            },
        ),
    ],
)  # fmt: skip
def test_traceback_is_found(
    text: str, wanted: dict[str, str], steady_server: FixtureServer, desk: Reader
) -> None:
    assert call(desk, steady_server, "job/exceptions.js", "split", text) == wanted


@pytest.mark.gate
def test_graph_is_laid_out(steady_server: FixtureServer, desk: Reader) -> None:
    ids = list("abcdef")
    edges = [{"from": pair[0], "to": pair[1]} for pair in ("ab", "ac", "bd", "cd", "ad", "ef")]
    size = {"along": 10, "across": 4, "layerGap": 5, "gap": 2}
    made = call(desk, steady_server, "parts/layout.js", "layout", ids, edges, size)
    places = made["places"]
    assert {node: place["along"] for node, place in places.items()} == {
        "a": 0,
        "e": 0,
        "b": 15,
        "c": 15,
        "f": 15,
        "d": 30,
    }
    for layer in ("ae", "bcf"):
        across = sorted(places[node]["across"] for node in layer)
        assert all(other - one >= 6 for one, other in itertools.pairwise(across)), "nodes overlap"
    assert min(place["across"] for place in places.values()) >= 0
    through = next(route for route in made["routes"] if route["from"] + route["to"] == "ad")
    assert [point["along"] for point in through["points"]] == [10, 15, 25, 30]
    # no plan has one, but whoever draws must not hang
    circle = [{"from": "a", "to": "b"}, {"from": "b", "to": "a"}]
    assert set(
        call(desk, steady_server, "parts/layout.js", "layout", ["a", "b"], circle, size)["places"]
    ) == {"a", "b"}


@pytest.mark.parametrize(
    "function, value, wanted",
    [
        ("count", None, "–"), ("count", "NaN", "–"), ("count", 0, "0"), ("count", 1234567, "1,234,567"),
        ("count", -9223372036854775808, "–"), ("short", 15_300, "15.3k"), ("short", 2.5e9, "2.5G"),
        ("bytes", -1, "–"), ("bytes", 1536, "1.5 KiB"), ("duration", -1, "–"), ("duration", 999, "999 ms"),
        ("duration", 59_999, "60 s"), ("duration", 61_000, "1 min 1 s"), ("duration", 90_061_000, "1 d 1 h"),
        ("time", 0, "–"), ("percent", 0.256, "26 %"), ("bytesPerSecond", 2048, "2 KiB/s"),
        ("descriptionLines", "a &lt;b&gt;<br/>+- c&#92;d &amp;lt;<br/>", ["a <b>", "+- c\\d &lt;"]),
    ],
)  # fmt: skip
def test_values_are_written(
    function: str, value: Any, wanted: Any, steady_server: FixtureServer, desk: Reader
) -> None:
    assert call(desk, steady_server, "core/format.js", function, value) == wanted


def call(reader: Reader, server: FixtureServer, module: str, function: str, *arguments: Any) -> Any:
    """The result of a function of the dashboard, in the browser."""
    if not reader.page.url.startswith(server.url):
        reader.open(server.url, "overview")
    return reader.page.evaluate(
        """async ([module, name, values]) => {
            const made = (await import(new URL(`dashboard/${module}`, document.baseURI)))[name](...values);
            const plain = (key, value) => value instanceof Map ? Object.fromEntries(value) : value;
            return JSON.parse(JSON.stringify(made, plain));
        }""",
        [module, function, list(arguments)],
    )


def test_what_is_asked_for_while_data_are_loaded_is_loaded_after(
    steady_server: FixtureServer, desk: Reader
) -> None:
    """The next look by itself would be in an hour."""
    page = desk.open(steady_server.url, "overview")
    page.evaluate(
        """async () => {
            const { Visit } = await import(new URL("dashboard/core/visit.js", document.baseURI));
            const ends = [];
            window.loads = () => ends.length;
            const load = () => new Promise((end) => ends.push(end));
            const shell = { refreshMs: 3_600_000, connected() {} };
            const place = { key: "test", params: {}, rest: [] };
            const visit = new Visit(place, { load, view: () => [] }, shell, document.createElement("main"));
            const shown = visit.start();
            visit.refresh();
            ends[0]({});
            await shown;
        }"""
    )
    wait_until(lambda: page.evaluate("window.loads()") == 2, "the second load", PATIENCE.page_s)

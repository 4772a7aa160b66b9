"""A browser for tests of the dashboard."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Response, sync_playwright

from integration.rest.fixture_server import FixtureServer
from integration.rest.sample_cluster import SampleCluster

DESKTOP: Final = {"width": 1360, "height": 860}
PHONE: Final = {"width": 360, "height": 740}
#: how long anything may take to show; machines of tests are slow
PATIENCE_MS: Final = 30_000


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests, without a window."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert program is not None, "a browser is missing (Debian: apt-get install chromium)"
    with sync_playwright() as playwright:
        # root may not use its sandbox, and only our own pages are shown
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@dataclass
class Reader:
    """Somebody who looks at the dashboard, and what the browser complained of meanwhile."""

    context: BrowserContext
    page: Page
    complaints: list[str] = field(default_factory=list)
    #: requests that went elsewhere than to the dashboard's server
    foreign: list[str] = field(default_factory=list)

    def open(self, url: str, place: str = "") -> Page:
        """Load the dashboard anew at a place, such as ``jobs``, and wait until it is drawn."""
        host = url.split("/")[2]
        self.page.on("request", lambda request: self._see(request.url, host))
        self.page.goto("about:blank")
        self.page.goto(f"{url}#/{place}")
        self.page.wait_for_selector("main[aria-busy=false]")
        return self.page

    def _see(self, url: str, host: str) -> None:
        if url.startswith("http") and url.split("/")[2] != host:
            self.foreign.append(url)


@pytest.fixture
def reader(browser: Browser) -> Iterator[Reader]:
    """With a screen of a desk; its script errors and breaches of the content security policy fail the test."""
    yield from _reader(browser, viewport=DESKTOP)


@pytest.fixture
def phone_reader(browser: Browser) -> Iterator[Reader]:
    """With a phone that is dark, and who wants nothing to move."""
    yield from _reader(
        browser, viewport=PHONE, has_touch=True, is_mobile=True, color_scheme="dark", reduced_motion="reduce"
    )


@pytest.fixture
def server() -> Iterator[FixtureServer]:
    """A cluster with jobs."""
    server = FixtureServer(SampleCluster())
    yield server
    server.stop()


def _reader(browser: Browser, **settings: Any) -> Iterator[Reader]:
    context = browser.new_context(**settings)
    context.set_default_timeout(PATIENCE_MS)
    reader = Reader(context, context.new_page())
    reader.page.on("pageerror", lambda error: reader.complaints.append(f"{error}"))
    reader.page.on("console", lambda message: _hear(reader, message))
    reader.page.on("response", lambda response: _check(reader, response))
    yield reader
    context.close()
    assert not reader.complaints
    assert not reader.foreign, "requests left the host"


def _hear(reader: Reader, message: ConsoleMessage) -> None:
    # failed requests are the test's own doing
    if message.type == "error" and "Failed to load resource" not in message.text and "net::" not in message.text:
        reader.complaints.append(message.text)


def _check(reader: Reader, response: Response) -> None:
    if "/dashboard/" in response.url and response.status != 200:
        reader.complaints.append(f"{response.status} {response.url}")

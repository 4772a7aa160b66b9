"""A browser for tests of the dashboard."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    Response,
    ViewportSize,
    expect,
    sync_playwright,
)

from integration.rest.fixture_server import FixtureServer
from integration.rest.sample_cluster import SampleCluster
from tests.patience import PATIENCE

DESKTOP: Final[ViewportSize] = {"width": 1360, "height": 860}
PHONE: Final[ViewportSize] = {"width": 360, "height": 740}


# not for the session: while it runs, no other test of the process can have an event loop
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for a file of tests, without a window."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert program is not None, "a browser is missing (Debian: apt-get install chromium)"
    expect.set_options(timeout=PATIENCE.page_s * 1000)
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
    # all of them: what the last page asked for may be told after the reader has gone on to the next server
    _hosts: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.context.set_default_timeout(PATIENCE.page_s * 1000)
        self.page.on("pageerror", lambda error: self.complaints.append(f"{error}"))
        self.page.on("console", self._hear)
        self.page.on("response", self._check)
        self.page.on("request", self._see)

    def sign_in(self, link: str) -> None:
        """Be let in by what ``yarnflow dashboard`` prints."""
        self._hosts.add(urlsplit(link).netloc)
        self.page.goto(link)
        expect(self.page).not_to_have_url(re.compile("code="))

    def open(self, url: str, place: str = "") -> Page:
        """Load the dashboard anew at a place, such as ``jobs``, and wait until it is drawn."""
        self.page.goto("about:blank")
        return self.go(url, place)

    def go(self, url: str, place: str) -> Page:
        """The same by a link, without a new load where the dashboard of this server is shown already."""
        self._hosts.add(urlsplit(url).netloc)
        self.page.goto(f"{url}#/{place}")
        self.page.wait_for_selector(f"main[data-place='#/{place}'][aria-busy=false]")
        return self.page

    def check(self) -> None:
        """Scripts have not failed, the policy was kept, and no request went to a host nobody opened."""
        complaints = list(self.complaints)
        self.complaints.clear()
        assert not complaints

    def _hear(self, message: ConsoleMessage) -> None:
        # requests that fail are the tests' own doing
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.complaints.append(message.text)

    def _check(self, response: Response) -> None:
        if "/dashboard/" in response.url and response.status != 200:
            self.complaints.append(f"{response.status} {response.url}")

    def _see(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.netloc not in self._hosts:
            self.complaints.append(f"a request went to {request.url}")


def violations(page: Page) -> list[str]:
    """What axe-core finds fault with, each with the places."""
    # what the size of a thing decides is there with its first frame
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    found = Axe().run(page).response["violations"]
    return [f"{each['id']}: {[node['html'][:160] for node in each['nodes']]}" for each in found]


def tab_to(page: Page, text: str, most: int = 60) -> None:
    """Press the tab key until what has the focus begins with a text."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent.trim()").startswith(text):
            return
    raise AssertionError(f"the tab key does not lead to {text!r}")


@pytest.fixture
def reader(browser: Browser) -> Iterator[Reader]:
    """With the screen of a desk."""
    context = browser.new_context(viewport=DESKTOP)
    reader = Reader(context, context.new_page())
    yield reader
    context.close()
    reader.check()


@pytest.fixture(scope="module")
def _desk(browser: Browser) -> Iterator[Reader]:
    context = browser.new_context(viewport=DESKTOP)
    yield Reader(context, context.new_page())
    context.close()


@pytest.fixture(scope="module")
def _phone(browser: Browser) -> Iterator[Reader]:
    context = browser.new_context(
        viewport=PHONE, has_touch=True, is_mobile=True, color_scheme="dark", reduced_motion="reduce"
    )
    yield Reader(context, context.new_page())
    context.close()


@pytest.fixture
def desk(_desk: Reader) -> Iterator[Reader]:
    """One for many tests, who goes from page to page."""
    yield _desk
    _desk.check()


@pytest.fixture
def phone(_phone: Reader) -> Iterator[Reader]:
    """The same with a phone that is dark, who wants nothing to move."""
    yield _phone
    _phone.check()


@pytest.fixture
def server() -> Iterator[FixtureServer]:
    """A cluster with jobs."""
    server = FixtureServer(SampleCluster())
    yield server
    server.stop()


@pytest.fixture(scope="module")
def steady_server() -> Iterator[FixtureServer]:
    """The same for tests that change nothing."""
    server = FixtureServer(SampleCluster())
    yield server
    server.stop()

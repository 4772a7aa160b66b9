"""The dashboard in a headless browser that has seen nothing before: first paint, time until drawn, bytes."""

from __future__ import annotations

import shutil
import time
from statistics import median
from typing import Any, Final

from playwright.sync_api import sync_playwright

from yarnflow.core.messages import RestAccess
from yarnflow.rest.access.links import dashboard_link

_PAINT: Final = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
_FILES: Final = """() => performance.getEntries().filter((each) => each.transferSize !== undefined)
  .map((each) => [new URL(each.name).pathname, each.transferSize])"""


def measure_page(url: str, place: str, rounds: int, token: str) -> dict[str, Any]:
    """Medians over new browsers; bytes are those that crossed the network, heads included."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        raise SystemExit("rest: a browser is missing (Debian: apt-get install chromium)")
    paints, drawn, sizes = [], [], []
    with sync_playwright() as playwright:
        for _ in range(rounds):
            browser = playwright.chromium.launch(
                executable_path=program, args=["--no-sandbox", "--disable-gpu"]
            )
            page = browser.new_page()
            began = time.monotonic()
            page.goto(dashboard_link(RestAccess(url, token), place, read_only=True))
            page.wait_for_selector(f"main[data-place='#/{place}'][aria-busy=false]", timeout=120_000)
            drawn.append((time.monotonic() - began) * 1000)
            paints.append(float(page.evaluate(_PAINT)))
            sizes.append(page.evaluate(_FILES))
            browser.close()
    own = [size for path, size in sizes[0] if path == "/" or path.startswith("/dashboard/")]
    return {
        "place": place,
        "first_contentful_paint_ms": round(median(paints)),
        "drawn_ms": round(median(drawn)),
        "files": len(own),
        "bytes_of_files": sum(own),
        "bytes_of_answers": sum(size for _, size in sizes[0]) - sum(own),
    }

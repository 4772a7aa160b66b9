"""Programs in the pages below ``docs``, and what they print; shared by the tests that run them.

A program is a fenced block ``python`` that is followed by a block ``text`` with its output.  ``text any
order`` says that the order of the lines is not certain.  Programs that execute a job need a cluster; all
others run in the process of the test.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.package_modules import ROOT

PAGES: Final = tuple(sorted((ROOT / "docs" / "programs").glob("*.md")))

_BLOCK: Final = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class PageProgram:
    """A program of a page."""

    page: Path
    #: from 1 on in its page
    number: int
    source: str
    #: lines it prints; None: the page does not say
    output: tuple[str, ...] | None
    any_order: bool

    @property
    def name(self) -> str:
        """Such as ``state-2``."""
        return f"{self.page.stem}-{self.number}"

    @property
    def is_job(self) -> bool:
        """Whether it needs something that runs jobs."""
        return ".execute(" in self.source or ".execute_and_collect(" in self.source

    def comparable(self, output: str) -> list[str]:
        """Lines of an output in the form of `wanted_lines`."""
        lines = output.splitlines()
        return sorted(lines) if self.any_order else lines

    def wanted_lines(self) -> list[str]:
        """What the page says, in the form in which it is compared."""
        return self.comparable("\n".join(self.output or ()))


def page_programs(page: Path) -> list[PageProgram]:
    """All programs of a page."""
    blocks: list[tuple[str, str, str]] = _BLOCK.findall(page.read_text(encoding="utf-8"))
    found: list[PageProgram] = []
    for block, following in zip(blocks, [*blocks[1:], ("", "", "")], strict=True):
        if block[0] == "python":
            output = tuple(following[2].splitlines()) if following[0] == "text" else None
            any_order = following[1].strip() == "any order"
            found.append(PageProgram(page, len(found) + 1, block[2], output, any_order))
    return found


def all_programs() -> list[PageProgram]:
    """All programs of all pages."""
    return [program for page in PAGES for program in page_programs(page)]

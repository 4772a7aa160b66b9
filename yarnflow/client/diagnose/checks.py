"""Checks of what jobs need, before a job finds out.

A check returns what it found or raises the error a job would have met; one that fails never hides
the others.  Nothing is repaired.  Flink has no counterpart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from yarnflow.errors import YarnflowError


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    name: str
    ok: bool
    text: str
    #: it was left out because of another one
    skipped: bool = False


@dataclass(frozen=True, slots=True)
class Check:
    """One thing to look at."""

    name: str
    #: what was found; raises YarnflowError
    look: Callable[[], str]
    #: checks without which it makes no sense
    needs: tuple[str, ...] = ()


def run_checks(checks: Sequence[Check]) -> Iterator[Finding]:
    """Run the checks in order, each one whatever became of the others."""
    failed: dict[str, bool] = {}
    for check in checks:
        missing = [name for name in check.needs if failed.get(name)]
        if missing:
            failed[check.name] = True
            yield Finding(check.name, False, f"not checked: it needs {' and '.join(missing)}", skipped=True)
            continue
        try:
            finding = Finding(check.name, True, check.look())
        except YarnflowError as error:
            finding = Finding(check.name, False, " ".join(str(error).split()))
        except Exception as error:
            # a fault of a check is no reason to withhold the others
            text = f"the check itself failed: {type(error).__name__}: {error}; please report it"
            finding = Finding(check.name, False, " ".join(text.split()))
        failed[check.name] = not finding.ok
        yield finding

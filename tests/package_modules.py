"""Which modules the package has; shared by the tests that read source code."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: written by the Thrift compiler
GENERATED = "yarnflow.rpc._gen"


def _find() -> dict[str, Path]:
    found = {}
    for path in sorted((ROOT / "yarnflow").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if not name.startswith(GENERATED):
            found[name] = path
    return found


#: dotted name → file of every module written by hand
MODULES = _find()

"""Messages that several threads read at the same time, each for the first time."""

from __future__ import annotations

import subprocess
import sys

_FIRST_USES = """
import json, sys, threading
from dataclasses import make_dataclass
from yarnflow.core.json_codec import from_json

sys.setswitchinterval(1e-6)
for number in range(60):
    inner = [make_dataclass(f"I{i}", [(f"g{j}", int) for j in range(8)]) for i in range(12)]
    outer = make_dataclass("O", [(f"f{i}", cls) for i, cls in enumerate(inner)])
    text = json.dumps({f"f{i}": {f"g{j}": 1 for j in range(8)} for i in range(12)})
    together = threading.Barrier(4)
    threads = [threading.Thread(target=lambda: (together.wait(), from_json(outer, text))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_the_first_use_of_a_class_in_several_threads_does_not_end_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", _FIRST_USES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.returncode}: {done.stderr}"

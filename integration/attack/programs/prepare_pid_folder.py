"""Make the folder in which another user's scripts might look for pid files, before they do.

    python -m integration.attack.programs.prepare_pid_folder FOLDER FILE PID

FILE of that user's is what output would be written to, PID a process of that user's that would be ended.
"""

from __future__ import annotations

import sys
from pathlib import Path

from integration.attack.attacker import become_attacker

become_attacker()

if __name__ == "__main__":
    folder, file, pid = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    folder.mkdir()
    folder.chmod(0o777)
    for name in ("jobmanager.out", "historyserver.out"):
        (folder / name).symlink_to(file)
    for name in ("taskmanager-9.pid", "historyserver.pid"):
        (folder / name).write_text(f"{pid}\n")

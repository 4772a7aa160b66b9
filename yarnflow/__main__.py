"""``python -m yarnflow PROGRAM``: runs a program on a cluster of its own on this machine."""

import os
import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        # the folder of the shell, which others may write into; a program's own folder is added with it
        del sys.path[0]
    from yarnflow.cli.main import main

    # options of submit may stand before the program
    of_python = ["--target", "local", f"--default-parallelism={os.cpu_count() or 1}"]
    raise SystemExit(main(["submit", *of_python, *sys.argv[1:]]))

"""``python -m yarnflow PROGRAM``: runs a program on a cluster of its own on this machine."""

import os
import sys

from yarnflow.cli.main import main

if __name__ == "__main__":
    # options of submit may stand before the program
    of_python = ["--target", "local", f"--default-parallelism={os.cpu_count() or 1}"]
    raise SystemExit(main(["submit", *of_python, *sys.argv[1:]]))

"""``python -m yarnflow PROGRAM``: runs a program on a cluster of its own on this machine."""

import sys

from yarnflow.cli.main import main

if __name__ == "__main__":
    # options of submit may stand before the program
    raise SystemExit(main(["submit", "--target", "local", *sys.argv[1:]]))

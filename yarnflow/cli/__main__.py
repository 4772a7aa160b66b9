"""``python -m yarnflow.cli``."""

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        # the folder of the shell, which others may write into
        del sys.path[0]
    from yarnflow.cli.main import main

    raise SystemExit(main())

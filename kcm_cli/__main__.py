"""``python -m kcm_cli``: the console script ``kcm``."""

import sys

from kcm_cli.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

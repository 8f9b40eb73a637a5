"""`python -m humanoid_control`: the command `humanoid`, where another package has its name."""

import sys

from humanoid_control.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

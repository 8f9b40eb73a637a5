"""List the tests that are tried once more where they fail, each with its reason: `python test/retries.py`.

`test` is also the name of a package of Python's own, which only pytest's way to import ours keeps apart: what is of the
tests is imported when pytest has begun.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections import defaultdict
from pathlib import Path

import pytest


class Listing:
    """Plugin that keeps the reasons of what was collected."""

    def __init__(self) -> None:
        self.tests: dict[str, set[str]] = defaultdict(set)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        from test.kinds import retry_reason

        for item in session.items:
            if reason := retry_reason(item):
                self.tests[reason].add(item.nodeid.split("[", 1)[0])


def main(argv: list[str]) -> int:
    """Print the list; arguments are those of pytest."""
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    listing = Listing()
    with contextlib.redirect_stdout(io.StringIO()) as said:
        code = pytest.main(["--collect-only", "-q", "-m", "retry", *argv], [listing])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        print(said.getvalue(), file=sys.stderr)
        return int(code)
    for reason, tests in sorted(listing.tests.items()):
        print(f"{reason}:", *(f"  {test}" for test in sorted(tests)), sep="\n")
    if not listing.tests:
        print("no test is tried again")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Run the faults that other people reported and print a table: id, right value, result.

    python test/outside_faults.py                     # or `make faults`
    python test/outside_faults.py --only B01,W1
    python test/outside_faults.py --json faults.json

Each fault is a folder of `$HUMANOID_TEST_DATA/faults` with a README, and a test of that id in `test/outside`. A fault
whose folder is absent is skipped, as are those that need ROS 2 where it is absent. The exit code is 0 where all that
ran are right.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import textwrap
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent / "outside"
WORDS = {"passed": "right", "failed": "WRONG", "skipped": "skipped"}
WIDTH = 100


class Table:
    """Plugin that selects faults by id and prints a row as each one ends.

    Attributes:
        rows: id, right value, result and verdict of each fault that ran or was skipped.
        names: ids of all faults that have a test.
    """

    def __init__(self, only: list[str], out: io.TextIOBase) -> None:
        self.rows: list[dict[str, str]] = []
        self.names: set[str] = set()
        self._only, self._out = only, out
        self._reports: dict[str, list[pytest.TestReport]] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        named = {item: item.get_closest_marker("fault").args[0] for item in items}
        self.names = set(named.values())
        if set(self._only) - self.names:
            items.clear()
        items[:] = sorted((i for i in items if not self._only or named[i] in self._only), key=named.__getitem__)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "setup":
            self._reports[report.nodeid] = []
        reports = self._reports[report.nodeid]
        reports.append(report)
        if report.when != "teardown" or any(r.outcome == "rerun" for r in reports):  # else tried once more
            return
        kept = dict(report.user_properties)
        bad = next((r for r in reports if r.outcome != "passed"), report)
        result = [kept.get("result", ""), "" if bad.outcome == "passed" else reason(bad)]
        row = {
            "id": kept.get("id", report.nodeid),
            "right value": kept.get("right", ""),
            "result": ". ".join(r for r in result if r),
            "verdict": WORDS[bad.outcome],
        }
        self.rows.append(row)
        self._out.write(printed(row))
        self._out.flush()


def reason(report: pytest.TestReport) -> str:
    """Return in one line why a test failed or was skipped."""
    if report.skipped and isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message if crash else report.longreprtext).splitlines()[0]


def printed(row: dict[str, str]) -> str:
    """Return a row of the table, wrapped."""
    lines = textwrap.wrap(row["result"], WIDTH - 23) or ["-"]
    right = textwrap.wrap(row["right value"], WIDTH - 23)
    out = [f"{row['id']:<5} {row['verdict']:<8} right:  {right[0] if right else ''}"]
    out += [" " * 23 + line for line in right[1:]]
    out += [f"{'':<15}result: {lines[0]}", *(" " * 23 + line for line in lines[1:])]
    return "\n".join(out) + "\n"


def main(argv: list[str] | None = None) -> int:
    """Print the table; return 0 where nothing is wrong, 1 where something is, 2 for arguments that name no fault."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", metavar="IDS", default="", help="these faults only, as B01,W1")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the rows there too")
    args = parser.parse_args(argv)
    only = [name for name in args.only.split(",") if name]
    sys.path[0] = str(FOLDER.parents[1])
    table = Table(only, sys.stdout)
    with contextlib.redirect_stdout(io.StringIO()) as said:
        code = pytest.main(
            [str(FOLDER), "-q", "-p", "no:cacheprovider", "-o", "addopts=--import-mode=importlib"], [table]
        )
    unknown = [name for name in only if name not in table.names]
    if table.names and unknown:
        print(f"--only: no fault {', '.join(unknown)}: the ids are {', '.join(sorted(table.names))}", file=sys.stderr)
        return 2
    if not table.rows:
        print(said.getvalue(), file=sys.stderr)
        return int(code) or 1
    if args.json:
        args.json.write_text(json.dumps(table.rows, indent=1) + "\n")
    count = {v: sum(row["verdict"] == v for row in table.rows) for v in WORDS.values()}
    print(f"{count['right']} right, {count['WRONG']} wrong, {count['skipped']} skipped of {len(table.rows)}")
    return int(count["WRONG"] > 0)


if __name__ == "__main__":
    sys.exit(main())

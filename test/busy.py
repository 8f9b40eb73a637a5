"""Repeat the tests that start nodes, processes or a browser, next to busy loops: `make busy [RUNS=20] [LOOPS=1]`.

A test that fails here fails by chance elsewhere: on a machine with other work. Each run and its failures are appended
to `.junit/busy.json` with the commit, so that a series can be interrupted and resumed; `--fresh` begins a new one.
`.junit/busy_3.log` holds the output of the third run.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / ".junit" / "busy.json"
MARKS = ("ros", "browser", "drives", "processes")
SELECTION = f"not thorough and not nightly and not timed and ({' or '.join(MARKS)})"
WORKERS = 3


def main() -> int:
    """Run the series; exit code 1 where a run failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--runs", type=int, default=20, metavar="N", help="runs of the series (default 20)")
    parser.add_argument("--loops", type=int, default=1, metavar="N", help="busy loops next to the tests (default 1)")
    parser.add_argument("--fresh", action="store_true", help="begin a new series")
    args = parser.parse_args()
    if args.runs < 1 or args.loops < 0:
        parser.error("--runs must be at least 1, and --loops at least 0")
    runs: list[dict[str, Any]] = [] if args.fresh or not KEPT.exists() else json.loads(KEPT.read_text())
    KEPT.parent.mkdir(exist_ok=True)
    with busy(args.loops):
        while len(runs) < args.runs:
            runs.append(run_once(len(runs) + 1) | {"loops": args.loops})
            KEPT.write_text(json.dumps(runs, indent=1) + "\n")
            print(row(len(runs), runs[-1]), flush=True)
    for test, count in Counter(test for run in runs for test in run["failed"]).most_common():
        print(f"{count:3d} of {len(runs)}  {test}")
    return int(any(run["failed"] for run in runs))


@contextlib.contextmanager
def busy(loops: int) -> Iterator[None]:
    """Keep processors busy meanwhile."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def run_once(number: int) -> dict[str, Any]:
    """Run the tests once; return the commit, the seconds, the number of tests and those that failed."""
    report = KEPT.with_name("busy.xml")
    report.unlink(missing_ok=True)
    begin = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(WORKERS), "--dist", "loadfile", "-m", SELECTION]
    with KEPT.with_name(f"busy_{number}.log").open("w") as log:
        subprocess.run([*command, f"--junitxml={report}", *files()], cwd=ROOT, stdout=log, stderr=log, check=False)
    seconds = time.monotonic() - begin
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    count, failed = read(report)
    return {"commit": commit.stdout.strip(), "seconds": round(seconds), "tests": count, "failed": failed}


def files() -> list[str]:
    """Return the test files with such tests: to collect all others takes longer than many a test."""
    words = [f"mark.{mark}" for mark in MARKS]
    paths = sorted((ROOT / "test").rglob("test_*.py"))
    return [str(p.relative_to(ROOT)) for p in paths if any(word in p.read_text() for word in words)]


def read(report: Path) -> tuple[int, list[str]]:
    """Return the number of tests in a JUnit file, and the names of those that failed."""
    if not report.exists():
        return 0, ["the run itself: no report"]
    cases = [case for case in ET.parse(report).iter("testcase") if case.find("skipped") is None]
    bad = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    return len(cases), sorted(f"{case.get('classname')}::{case.get('name')}" for case in bad)


def row(number: int, run: dict[str, Any]) -> str:
    """Return one run as a line."""
    failed = ", ".join(run["failed"]) or "none"
    return f"run {number}: {run['tests']} tests in {run['seconds']} s at {run['commit']}, failed: {failed}"


if __name__ == "__main__":
    sys.exit(main())

"""How long each test takes: kept from every run, and used to begin with what takes longest.

Two sources. `.durations.json` (ignored by git) holds the seconds of each test on this machine; every run adds to it.
`test/durations.json` (committed) holds the seconds of each test file, for machines that have run nothing yet;
`make durations` writes it from the JUnit files of the last `make test`, or from `.durations.json` where there are none.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LOCAL = ROOT / ".durations.json"
COMMITTED = ROOT / "test" / "durations.json"
JUNIT = (ROOT / ".junit" / "test.xml", ROOT / ".junit" / "timed.xml")  # of `make test`
SHORT = 0.5  # [s] files below are left out of the committed ones
UNKNOWN = 0.1  # [s] of a test that nobody has measured


def load() -> dict[str, float]:
    """Return the seconds of each test by node id, as last measured on this machine; empty before the first run."""
    return _read(LOCAL)


def load_files() -> dict[str, float]:
    """Return the seconds of each test file, from the committed measurements."""
    return _read(COMMITTED)


def estimate(tests: Iterable[str]) -> dict[str, float]:
    """Return the expected seconds of tests, by node id.

    A test that was measured on this machine takes as long as then; the others of a file share the committed time of
    their file that is left.
    """
    tests, measured, files = list(tests), load(), load_files()
    out = {test: measured[test] for test in tests if test in measured}
    known, unknown = _by_file(out), Counter(file_of(test) for test in tests if test not in out)
    for test in tests:
        if test not in out:
            file = file_of(test)
            rest = files[file] - known.get(file, 0.0) if file in files else 0.0
            out[test] = max(rest / unknown[file], UNKNOWN)
    return out


def file_of(test: str) -> str:
    """Return the file of a node id."""
    return test.split("::", 1)[0]


def _by_file(seconds: Mapping[str, float]) -> Counter[str]:
    total: Counter[str] = Counter()
    for test, each in seconds.items():
        total[file_of(test)] += each
    return total


def _read(path: Path) -> dict[str, float]:
    with contextlib.suppress(OSError, ValueError):
        found = json.loads(path.read_text())
        if isinstance(found, dict):
            return {str(key): float(value) for key, value in found.items()}
    return {}


def _write(path: Path, seconds: Mapping[str, float]) -> None:
    """Replace a file in one step: several runs may end at the same time."""
    part = path.with_name(f"{path.name}.{os.getpid()}")
    part.write_text(json.dumps(dict(sorted(seconds.items())), indent=0, ensure_ascii=False) + "\n")
    part.replace(path)


class Recorder:
    """Plugin that keeps the durations of the tests that passed.

    Attributes:
        seconds: set-up, call and tear-down of each test so far [s]. failed: tests that did not pass.
    """

    def __init__(self, path: Path = LOCAL) -> None:
        self.path, self.seconds, self.failed = path, Counter[str](), set[str]()

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add one phase of a test."""
        if report.passed:
            self.seconds[report.nodeid] += report.duration
        else:
            self.failed.add(report.nodeid)

    @pytest.hookimpl
    def pytest_sessionfinish(self) -> None:
        """Merge what this run measured into what is kept."""
        measured = {test: round(s, 3) for test, s in self.seconds.items() if test not in self.failed}
        if measured:
            with contextlib.suppress(OSError):  # a folder that cannot be written
                _write(self.path, _read(self.path) | measured)


def read_junit(path: Path) -> Counter[str]:
    """Return the seconds of each test file in a JUnit file."""
    total: Counter[str] = Counter()
    for case in ET.parse(path).iter("testcase"):
        words = case.get("classname", "").split(".")
        for end in range(len(words), 0, -1):  # the last ones may be classes
            file = "/".join(words[:end]) + ".py"
            if (ROOT / file).is_file():
                total[file] += float(case.get("time", 0.0))
                break
    return total


def main(argv: list[str]) -> int:
    """Write the committed durations."""
    junit = [Path(word) for word in argv] or [path for path in JUNIT if path.is_file()]
    total = sum((read_junit(path) for path in junit), Counter[str]()) or _by_file(load())
    if not total:
        print("durations: no test has run yet: run `make test`", file=sys.stderr)
        return 2
    there = {file: s for file, s in total.items() if s >= SHORT and (ROOT / file).is_file()}
    _write(COMMITTED, {file: round(s, 1) if s < 10.0 else float(round(s)) for file, s in there.items()})
    print(f"durations: {len(there)} files, {sum(total.values()) / 60:.1f} min, in {COMMITTED.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

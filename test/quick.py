"""Runs the tests that a change reaches: `make quick`, or `pytest --reached-by=REV` (empty: where the branch began).

The tests nearest to the changed names begin, the quickest of them first. Tests that start processes and tests marked
ros, browser, timed or thorough are left out, as are tests beyond a budget of seconds. `pytest --history=N` runs nothing
and counts the tests that each of the last N commits would have selected.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from pathlib import Path

import pytest

from humanoid_control.source_graph import SourceCache
from test import durations, reached

WORKERS = 2
BEGINNING = 8.0  # [s] of the budget in which two workers start and read their tests
ALONE = 8.0  # [s] of tests that one process runs sooner than two workers, which import everything twice


def pytest_addoption(parser):
    group = parser.getgroup("tests that a change reaches")
    group.addoption("--reached-by", metavar="REV", help="run the tests that depend on names changed since a commit")
    group.addoption("--budget", type=float, default=60.0, metavar="SECONDS", help="of --reached-by, on two workers")
    group.addoption("--history", type=int, metavar="N", help="count the tests that each of N commits would select")
    group.addoption(
        "--junit",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="report of an earlier run, for durations",
    )


@pytest.hookimpl(tryfirst=True)  # before the workers are counted
def pytest_cmdline_main(config):
    if hasattr(config, "workerinput"):
        return None
    if not config.option.history and config.option.reached_by is None:
        return None
    began = time.time()
    measured = durations.load() | reached.durations_of_reports(config.option.junit)
    seconds = durations.load_files() | reached.seconds_of_functions(measured)
    if config.option.history:
        _print_history(config.option.history, seconds)
        return 0
    cache = SourceCache.of(reached.REPOSITORY)
    base = config.option.reached_by or reached.default_base()
    if not reached.git("rev-parse", "--verify", "--quiet", f"{base}^{{commit}}"):
        raise pytest.UsageError(f"--reached-by: {base} is not a commit of this repository")
    change = reached.change_since(base, cache)
    cache.save()
    plan = _plan(change, seconds, config.option.budget) | {"end": began + config.option.budget}
    print(_summary(plan, base))
    if not plan["files"]:
        return 0
    config.reached = plan
    if plan["seconds"] > ALONE and config.option.numprocesses is None:
        config.option.numprocesses, config.option.dist = WORKERS, "loadfile"
    return None


def _plan(change, seconds, budget):
    """Tests to run and how many are left out, as plain values that a worker can be given."""
    tests, count = reached.reached_tests(change, seconds)
    eligible = [test for test in tests if not test.left_out]
    chosen = reached.cut_at(eligible, WORKERS * max(budget - BEGINNING, 0.0))
    edited = any(path.startswith(("humanoid_control/", "evidence/")) and path.endswith(".py") for path in change.files)
    readers = [path for path in reached.READ_SOURCES if edited and (reached.REPOSITORY / path).is_file()]
    return {
        "order": [test.nodeid for test in chosen],
        "files": list(dict.fromkeys([*(test.nodeid.partition("::")[0] for test in chosen), *readers])),
        "seconds": sum(test.seconds for test in chosen),
        "count": count,
        "cut": len(eligible) - len(chosen),
        "left_out": dict(Counter(test.left_out for test in tests if test.left_out)),
        "budget": budget,
    }


def _summary(plan, base):
    text = f"{len(plan['order'])} of {plan['count']} tests depend on what has changed since {base[:12]}"
    if plan["cut"]:
        text += f"; {plan['cut']} more are beyond the budget of {plan['budget']:g} s"
    if plan["left_out"]:
        text += f"; left out: {', '.join(f'{n} {reason}' for reason, n in sorted(plan['left_out'].items()))}"
    return text + "; `make test` runs all" * bool(plan["cut"] or plan["left_out"])


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """Give a worker the tests."""
    node.workerinput["reached"] = getattr(node.config, "reached", None)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session):
    config = session.config
    plan = getattr(config, "workerinput", {}).get("reached") or getattr(config, "reached", None)
    if plan:
        config.reached = plan
        config.args = [str(reached.REPOSITORY / path) for path in plan["files"]]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Keep the tests of the plan, in its order."""
    plan = getattr(config, "reached", None)
    if plan is None:
        return
    place = {nodeid: k for k, nodeid in enumerate(plan["order"])}
    kept = []
    for item in items:
        path, _, name = item.nodeid.partition("::")
        position = place.get(f"{path}::{name.partition('[')[0].partition('::')[0]}")
        if position is None and path in plan["files"] and path in reached.READ_SOURCES:
            position = -1
        if position is not None and not any(item.get_closest_marker(mark) for mark in reached.MARKS):
            kept.append((position, item))
    items[:] = [item for _, item in sorted(kept, key=lambda pair: pair[0])]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    plan = getattr(item.config, "reached", None)
    if plan and time.time() > plan["end"]:  # durations were unknown, or kernels had to be compiled
        pytest.skip(f"beyond the budget of {plan['budget']:g} s")


def _print_history(most, seconds):
    """Print how many tests each of the last commits would have selected, and the seconds that they take."""
    cache = SourceCache.of(reached.REPOSITORY)
    revisions = reached.git("log", "--no-merges", f"-{most}", "--format=%H", "--", "*.py").decode().split()
    rows = []
    for revision in revisions:
        begin = time.perf_counter()
        tests, count = reached.reached_tests(reached.change_of(revision, cache), seconds)
        eligible = [test for test in tests if not test.left_out]
        total = sum(test.seconds for test in eligible)
        rows.append((len(eligible), total, len(tests) - len(eligible), time.perf_counter() - begin))
        print(
            f"{revision[:10]}  {len(eligible):5d} of {count} tests, {total:7.1f} s, {rows[-1][2]:4d} left out",
            flush=True,
        )
    cache.save()
    columns = list(zip(*rows, strict=True))
    for name, column in zip(
        ("tests", "seconds in one process", "left out", "seconds of analysis"), columns, strict=True
    ):
        tenth = statistics.quantiles(column, n=10)[-1] if len(column) > 1 else column[0]
        print(f"{name}: median {statistics.median(column):.1f}, 90th percentile {tenth:.1f}")
    print(f"within a budget of 60 s on two workers: {sum(row[1] <= 120 for row in rows)} of {len(rows)} commits")

"""What kind a test is, by its markers: what it waits for, in which lane it runs, and whether it may be tried again."""

from __future__ import annotations

import pytest

WAITS = ("ros", "browser", "drives", "processes")  # markers of tests that mostly wait for others than themselves
STARTS = ("ros", "browser")  # of those that may be tried again, for a reason outside this code base
NEVER_AGAIN = ("timed", "drives")


def has(item: pytest.Item, *markers: str) -> bool:
    """Return whether a test has one of these markers."""
    return any(item.get_closest_marker(name) for name in markers)


def scope(item: pytest.Item) -> str:
    """Return what a worker takes at once: the tests of a kind in a file; whole stacks run one at a time."""
    if not has(item, *WAITS):
        return f"computes {item.nodeid.split('::', 1)[0]}"
    return "waits stacks" if has(item, "stack") else f"waits {item.nodeid.split('::', 1)[0]}"


def retry_reason(item: pytest.Item) -> str | None:
    """Return why a test is tried once more where it fails; None: it is not.

    Raises:
        UsageError: the marker has no reason, or the test is none that may be tried again.
    """
    marker = item.get_closest_marker("retry")
    if marker is None:
        return None
    if len(marker.args) != 1 or marker.kwargs or not isinstance(marker.args[0], str) or not marker.args[0].strip():
        raise pytest.UsageError(f"{item.nodeid}: `retry` takes one text, the reason, got {marker.args}")
    if not has(item, *STARTS) or has(item, *NEVER_AGAIN):
        raise pytest.UsageError(
            f"{item.nodeid}: `retry` is for tests marked {' or '.join(STARTS)}, and never for {', '.join(NEVER_AGAIN)}"
        )
    return marker.args[0]

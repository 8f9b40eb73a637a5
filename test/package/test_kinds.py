"""Markers decide how a test runs: which worker takes it, whether it is tried again; durations are kept and used."""

import json
from types import SimpleNamespace

import pytest

from test import durations, places, retries
from test.kinds import retry_reason, scope


def item(*markers, nodeid="test/nodes/test_x.py::test_y[1]"):
    by_name = {m.name: m for m in (getattr(pytest.mark, m) if isinstance(m, str) else m.mark for m in markers)}
    by_name = {name: getattr(m, "mark", m) for name, m in by_name.items()}
    return SimpleNamespace(nodeid=nodeid, get_closest_marker=by_name.get)


def test_tests_of_a_file_run_together_by_what_they_wait_for():
    assert scope(item()) == scope(item("timed")) == "computes test/nodes/test_x.py"
    for marker in ("ros", "browser", "drives", "processes"):
        assert scope(item(marker, "patient")) == "waits test/nodes/test_x.py"
    assert scope(item("ros", "stack")) == scope(item("stack", "ros", nodeid="test/b.py::test_z")) == "waits stacks"


def test_only_tests_of_nodes_and_pages_are_tried_again_and_only_with_a_reason():
    again = pytest.mark.retry("the middleware deadlocks at exit")
    assert retry_reason(item("ros")) is None
    assert retry_reason(item("ros", again)) == retry_reason(item("browser", again)) == again.args[0]
    for wrong in (pytest.mark.retry(), pytest.mark.retry(""), pytest.mark.retry(3), pytest.mark.retry("a", "b")):
        with pytest.raises(pytest.UsageError, match=r"test_y\[1\]: `retry` takes one text, the reason"):
            retry_reason(item("ros", wrong))
    for markers in ((), ("drives",), ("ros", "timed"), ("ros", "drives"), ("processes",)):
        with pytest.raises(pytest.UsageError, match="`retry` is for tests marked ros or browser"):
            retry_reason(item(*markers, again))


def test_retries_are_listed_with_their_reasons(capsys):
    listing = retries.Listing()
    again = pytest.mark.retry("a reason")
    listing.pytest_collection_finish(SimpleNamespace(items=[item("ros", again), item("ros")]))
    assert listing.tests == {"a reason": {"test/nodes/test_x.py::test_y"}}


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Files of durations of this test's own: those of this machine, and those that are committed."""
    monkeypatch.setattr(durations, "LOCAL", tmp_path / "local.json")
    monkeypatch.setattr(durations, "COMMITTED", tmp_path / "committed.json")
    return durations.LOCAL, durations.COMMITTED


def report(nodeid, duration, outcome="passed"):
    return SimpleNamespace(nodeid=nodeid, duration=duration, outcome=outcome, passed=outcome == "passed")


def test_every_run_adds_what_it_measured(kept):
    local, _ = kept
    local.write_text('{"a.py::test_1": 5.0, "a.py::test_2": 7.0}')
    recorder = durations.Recorder(local)
    for phase in (0.5, 2.0, 0.25):
        recorder.pytest_runtest_logreport(report("a.py::test_1", phase))
    recorder.pytest_runtest_logreport(report("a.py::test_2", 0.1))
    recorder.pytest_runtest_logreport(report("a.py::test_2", 60.0, "failed"))
    recorder.pytest_runtest_logreport(report("b.py::test_3", 0.0, "skipped"))
    recorder.pytest_sessionfinish()
    assert durations.load() == {"a.py::test_1": 2.75, "a.py::test_2": 7.0}, "one that failed says nothing"


def test_a_damaged_file_is_measured_again(kept):
    local, _ = kept
    local.write_text('{"a.py::test_1": ')
    assert durations.load() == {} and list(durations.estimate(["a.py::test_1"]).values()) == [durations.UNKNOWN]


def test_what_was_not_measured_here_shares_the_time_of_its_file(kept):
    local, committed = kept
    local.write_text('{"a.py::test_1": 3.0}')
    committed.write_text('{"a.py": 11.0, "b.py": 6.0}')
    tests = ["a.py::test_1", "a.py::test_2", "a.py::test_3[x::y]", "b.py::test_4", "c.py::test_5"]
    assert list(durations.estimate(tests).values()) == [3.0, 4.0, 4.0, 6.0, durations.UNKNOWN]


def test_committed_durations_are_those_of_the_last_run(kept, tmp_path, capsys):
    _, committed = kept
    junit = tmp_path / "test.xml"
    junit.write_text(
        '<testsuites><testsuite><testcase classname="test.package.test_kinds" name="a" time="20.26"/>'
        '<testcase classname="test.package.test_kinds.TestClass" name="b" time="1.0"/>'
        '<testcase classname="test.package.test_lazy" name="c" time="0.1"/>'
        '<testcase classname="test.gone" name="d" time="9.0"/></testsuite></testsuites>'
    )
    assert durations.main([str(junit)]) == 0
    assert json.loads(committed.read_text()) == {"test/package/test_kinds.py": 21.0}
    assert "1 files, 0.4 min" in capsys.readouterr().out


def test_runs_at_the_same_time_have_domains_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(places, "_held", held := [])
    numbers = [places.claim_run(tmp_path) for _ in range(places.RUNS)]
    assert numbers == list(range(places.RUNS))
    assert places.claim_run(tmp_path) in numbers and len(held) == places.RUNS, "all are taken: shared, not waited for"
    held.pop(2).close()
    assert places.claim_run(tmp_path) == 2
    assert places.RUN in numbers

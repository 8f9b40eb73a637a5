"""Figures about ticks, and the sentences about what is wrong."""

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2: the nodes import rclpy")

from humanoid_control.nodes.base.health import Health, Level
from humanoid_control.nodes.base.statistics import SampleWindow, TickStatistics


def test_percentiles_are_numpys_over_the_last_samples():
    rng, samples = np.random.default_rng(0), SampleWindow(500)
    values = rng.exponential(size=1700)
    for v in values:
        samples.add(v)
    assert samples.percentiles() == pytest.approx(tuple(np.percentile(values[-500:], [50, 99])))
    assert np.isnan(SampleWindow(5).percentiles()).all()


def test_periods_execution_and_missed_ticks():
    s = TickStatistics(100.0)
    for k in range(200):
        skipped = 1 if k == 100 else 0
        start = 0.01 * (k + (1 if k >= 100 else 0))
        s.tick(start, start + 0.002, skipped)
    r = s.report()
    assert r.period_p50 == pytest.approx(0.01) and r.rate == pytest.approx(100, rel=1e-6)
    assert r.execution_p50 == pytest.approx(0.002)
    assert (r.ticks, r.missed) == (200, 1)
    assert r.missed_percent == pytest.approx(100 / 201)
    assert s.report().missed_percent == 0, "the share is of the time since the last report"


def test_restart_forgets_the_pause():
    s = TickStatistics(100.0)
    s.tick(0.0, 0.001, 0)
    s.restart()
    s.tick(50.0, 50.001, 0)
    s.tick(50.01, 50.011, 0)
    assert s.report().period_p99 == pytest.approx(0.01)


def test_problems_are_logged_when_they_begin_and_end():
    said = []
    health = Health(lambda level, text: said.append((level, text)))
    for _ in range(3):
        health.report("a", Level.WARN, "a is odd")
    health.check("b", True, Level.ERROR, "b is broken")
    assert health.worst() == (Level.ERROR, "b is broken; a is odd")
    health.check("b", False, Level.ERROR, "b is broken")
    health.clear("a")
    health.clear("never there")
    assert said == [
        (Level.WARN, "a is odd"),
        (Level.ERROR, "b is broken"),
        (Level.OK, "recovered: b is broken"),
        (Level.OK, "recovered: a is odd"),
    ]
    assert health.worst() == (Level.OK, "ok")
    assert health.seen == {"a": 1, "b": 1}


def test_what_began_or_ended_is_news_and_what_lasts_is_none():
    health, news = Health(lambda level, text: None), []
    for step in (
        lambda: health.clear("a"),
        lambda: health.report("a", Level.WARN, "a is odd"),
        lambda: health.report("a", Level.WARN, "a is odd"),
        lambda: health.clear("a"),
        lambda: health.clear("a"),
    ):
        health.news = False  # as when it was published
        step()
        news.append(health.news)
    assert news == [False, True, False, True, False]

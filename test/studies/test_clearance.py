"""Commands measured by the shapes of the published URDF, by coal."""

import numpy as np
import pytest

from evidence.studies.clearance import KEPT_SHARE, PublishedShapes, check_chunk, run_study
from humanoid_control.errors import ConfigError
from humanoid_control.ik import FollowerSettings, IkSettings
from humanoid_control.robots import load_robot


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "seed"), [("hrp2", 1), ("wabian2", 3), ("lola", 3), ("we4rii", 4)])
def test_whatever_is_asked_for_pairs_keep_three_quarters_of_their_margin(name, seed):
    """Targets of all points that jump about, or of hands that go out of reach; ticks of uneven length."""
    found = check_chunk((name, seed, 2500))
    assert found["touched"] == found["beneath"] == 0 and found["share"] > KEPT_SHARE
    assert found["share"] < 1.001, "no pair came near another, or this shows nothing"


@pytest.mark.nightly
def test_without_its_proof_pairs_come_nearer(monkeypatch):
    """The rows alone, which are soft, do not keep it."""
    settings = FollowerSettings(ik=IkSettings(swept=False))
    monkeypatch.setattr("evidence.studies.clearance.FollowerSettings", lambda: settings)
    assert check_chunk(("wabian2", 3, 1500))["share"] < KEPT_SHARE


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["hrp2", "armar3"])
def test_what_is_not_measured_is_no_nearer_than_is_said(name):
    robot, rng = load_robot(name, "fixed"), np.random.default_rng(0)
    bounded, exact = PublishedShapes(robot, 0.02), PublishedShapes(robot, 0.02)
    joints, measured = robot.postures["neutral"].copy(), 0
    for _ in range(40):
        size = 10.0 ** rng.uniform(-4.0, -0.5)
        joints = np.clip(joints + size * rng.normal(size=robot.n), robot.lower, robot.upper)
        q = robot.q(robot.follow(joints))
        known, true = bounded.measure(q, 0.02), exact.measure(q)
        assert (known <= true + 1e-5).all(), "but for what coal leaves open"
        assert known[true < 0.02] == pytest.approx(true[true < 0.02], abs=1e-5)
        measured += int((np.abs(known - true) < 1e-9).sum())
    assert measured < 0.7 * 40 * len(bounded.names), "the bounds save nothing"


def test_what_cannot_be_checked_is_refused():
    with pytest.raises(ConfigError, match="commands must be at least 1"):
        run_study(commands=0)
    with pytest.raises(ConfigError, match="seed must be 0 or more"):
        run_study(seed=-1)

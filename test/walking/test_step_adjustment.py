"""Adjustment of a step: the foothold and time are the minimum of the stated cost, and nothing moves without a push."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from humanoid_control.walking.step_adjustment import AdjustmentSettings, SwingChoice, adjust

SETTINGS = AdjustmentSettings()
OMEGA = 3.3


def planned(xi=(0.05, 0.03)):
    """A swing that ends as planned from xi."""
    zmp, remaining = np.zeros(2), 0.35
    foothold = np.array([0.25, 0.19])
    end = zmp + (np.array(xi) - zmp) * np.exp(OMEGA * remaining)
    return SwingChoice(
        xi=np.array(xi),
        zmp=zmp,
        omega=OMEGA,
        foothold=foothold,
        offset=end - foothold,
        remaining=remaining,
        soonest=0.1,
        latest=0.4,
        lower=np.array([-0.4, 0.15]),
        upper=np.array([0.6, 0.4]),
    )


def cost(x, c, w=SETTINGS):
    u, s = x[:2], x[2]
    b = c.zmp + (c.xi - c.zmp) * s - u
    return (
        w.place * ((u - c.foothold) ** 2).sum()
        + w.time * (s - np.exp(c.omega * c.remaining)) ** 2
        + w.offset * ((b - c.offset) ** 2).sum()
    )


def test_a_step_that_goes_as_planned_stays():
    c = planned()
    u, r = adjust(c, SETTINGS)
    np.testing.assert_allclose(u, c.foothold, atol=1e-12)
    assert r == pytest.approx(c.remaining, abs=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_foothold_and_time_are_the_minimum_of_the_cost(seed):
    rng = np.random.default_rng(seed)
    c = planned()
    c = replace(c, xi=c.xi + rng.normal(size=2) * 0.06)
    u, r = adjust(c, SETTINGS)
    bounds = [*zip(c.lower, c.upper, strict=True), (np.exp(OMEGA * c.soonest), np.exp(OMEGA * c.latest))]
    best = min(
        (
            minimize(
                cost, [*start, s], args=(c,), bounds=bounds, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-12}
            )
            for start in (c.foothold, c.lower, c.upper)
            for s in bounds[2]
        ),
        key=lambda found: found.fun,
    )
    mine = cost([*u, np.exp(OMEGA * r)], c)
    assert mine <= best.fun * (1 + 1e-3) + 1e-9
    assert (u >= c.lower - 1e-12).all() and (u <= c.upper + 1e-12).all()
    assert c.soonest - 1e-12 <= r <= c.latest + 1e-12


@pytest.mark.parametrize(("share", "end"), [(0.7, "latest"), (2.5, "soonest")])
def test_a_step_lands_no_later_and_no_sooner_than_it_may(share, end):
    """A robot that falls slower than planned would wait, one that falls faster would hurry: the foothold is kept."""
    c, keeps = planned(), replace(SETTINGS, time=1e-6, place=1e3)
    c = replace(c, xi=c.zmp + share * (c.xi - c.zmp))
    wanted = adjust(replace(c, soonest=0.01, latest=2.0), keeps)[1]
    assert wanted > c.latest + 1e-3 if end == "latest" else wanted < c.soonest - 1e-3
    assert adjust(c, keeps)[1] == pytest.approx(getattr(c, end), abs=1e-12)


def test_a_push_forward_moves_the_foot_forward_and_one_to_the_side_to_that_side():
    c = planned()
    assert adjust(replace(c, xi=c.xi + [0.04, 0.0]), SETTINGS)[0][0] > c.foothold[0] + 0.03
    assert adjust(replace(c, xi=c.xi + [0.0, 0.04]), SETTINGS)[0][1] > c.foothold[1] + 0.03

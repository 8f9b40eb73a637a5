"""Constants of the sternum: fitted, and judged on frames that were not used."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from humanoid_control.errors import ClipError
from humanoid_control.mocap import SternumSettings, estimate_sternum, fit_sternum
from humanoid_control.mocap.sternum import METHODS, link_lengths
from test.capture.sternum_people import distance, of


def test_fit_recovers_a_rigid_chest_exactly(dance):
    l_hip, r_hip, l_gh, r_gh, _ = of(dance)
    truth = SternumSettings("ours", forward=0.4, left=-0.03, up=-0.1)
    sternum = estimate_sternum(l_hip, r_hip, l_gh, r_gh, truth)
    found = fit_sternum(l_hip, r_hip, l_gh, r_gh, sternum)
    assert (found.forward, found.left, found.up) == pytest.approx((0.4, -0.03, -0.1))


def test_fit_of_the_source_method_gives_the_mean_lengths(dance):
    l_hip, r_hip, l_gh, r_gh, sternum = of(dance)
    settings = fit_sternum(l_hip, r_hip, l_gh, r_gh, sternum, SternumSettings("dube"))
    assert settings.k_c > 0 and settings.k_s > 0  # as the body facts of the source demand for a small person
    hips = (l_hip + r_hip) / 2
    L_c, L_s = link_lengths(l_gh - hips, r_gh - hips, settings)
    clavicles = [np.linalg.norm(sternum - p, axis=1).mean() for p in (l_gh, r_gh)]
    assert L_c.mean() == pytest.approx(np.mean(clavicles))
    assert L_s.mean() == pytest.approx(np.linalg.norm(sternum - hips, axis=1).mean(), abs=2e-4)


def test_fit_cannot_be_beaten_by_much_by_a_search(dance):
    l_hip, r_hip, l_gh, r_gh, sternum = of(dance)
    for method, names in (("ours", ("forward", "left", "up")), ("dube", ("k_c", "k_s"))):
        fitted = fit_sternum(l_hip, r_hip, l_gh, r_gh, sternum, SternumSettings(method))

        def cost(values, fitted=fitted, names=names):
            settings = replace(fitted, **dict(zip(names, values, strict=True)))
            error = estimate_sternum(l_hip, r_hip, l_gh, r_gh, settings) - sternum
            return float(np.mean(np.sum(error**2, axis=1)))

        start = [getattr(fitted, name) for name in names]
        best = minimize(cost, start, method="Nelder-Mead", options={"maxiter": 60}).fun
        assert cost(start) <= 1.02 * best


def test_constants_of_the_package_fit_the_two_recordings(dance, walk):
    def cost(settings):
        errors = [distance(p, estimate_sternum(*of(p)[:4], settings=settings)) for p in (dance, walk)]
        return sum(float(np.mean(error**2)) for error in errors)

    for method, names in (("ours", ("forward", "up")), ("dube", ("k_c", "k_s"))):
        start = SternumSettings(method)
        best = minimize(
            lambda v, s=start, n=names: cost(replace(s, **dict(zip(n, v, strict=True)))),
            [getattr(start, n) for n in names], method="Nelder-Mead", options={"maxiter": 60},
        ).fun  # fmt: skip
        assert cost(start) <= 1.05 * best


def test_nothing_to_learn_from_is_an_error(dance):
    l_hip, r_hip, l_gh, r_gh, sternum = of(dance)
    with pytest.raises(ClipError, match="no frame shows hips, shoulders and sternum"):
        fit_sternum(l_hip, r_hip, l_gh, r_gh, np.full_like(sternum, np.nan))


def test_goal_of_the_source_is_met_on_frames_not_used_for_fitting(report):
    """H18: 1.7 cm mean and 0.8 cm standard deviation, for both methods, each half judged with the other's constants."""
    for method in METHODS:
        row = report[method, "its other half"]
        assert row.sample == "out"
        assert row.mean["distance"] <= 0.017
        assert row.std["distance"] <= 0.008
    ours, dube = (report[method, "its other half"].mean["distance"] for method in METHODS)
    assert ours < 0.9 * dube


def test_from_another_person_only_our_method_stays_near_the_goal(report):
    assert report["ours", "walk1"].mean["distance"] < 0.02
    assert report["ours", "walk1"].mean["distance"] > 0.017  # the goal is not met there, and we do not say so
    assert report["dube", "walk1"].mean["distance"] > 0.10

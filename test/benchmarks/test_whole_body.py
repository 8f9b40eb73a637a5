"""`humanoid bench whole_body`: rows of the solver's own frames."""

from dataclasses import replace

import numpy as np
import pytest

from evidence.benchmarks.motion import whole_body
from test.walking_person import walking_person


def test_rows_tell_of_time_and_feet(monkeypatch):
    body = walking_person()[0]
    short = replace(body, positions=body.positions[:120], missing=body.missing.copy())
    monkeypatch.setattr(whole_body, "load_body_points", lambda motion: short)
    rows = {r["name"]: r for r in whole_body.measure("hrp2")}
    assert rows["hrp2_ours_live"]["n"] == 118 and 0 < rows["hrp2_ours_live"]["median"] < 1e5
    assert 0 <= rows["hrp2_ours_slip"]["p99"] < 1 and rows["hrp2_ours_penetration"]["n"] == 120
    assert len(whole_body.notes(list(rows.values()))) == 2


def test_slip_of_both_is_in_the_contacts_of_the_person_where_gmr_stands_beside(monkeypatch):
    """The stand-in stands still 0.2 m up: it slips nowhere, and ours no less in contacts that are not its own."""
    body = walking_person()[0]
    short = replace(body, positions=body.positions[:120], missing=body.missing.copy())
    monkeypatch.setattr(whole_body, "load_body_points", lambda motion: short)
    monkeypatch.setattr(whole_body, "gmr_installed", lambda: True)
    monkeypatch.setitem(whole_body.GMR_ROBOTS, "hrp2", "its_hrp2")

    def still(name, robot, person):
        q = np.tile(robot.q("neutral"), (person.n_frames, 1))
        q[:, 2] += 0.2
        return q, [10.0] * person.n_frames

    monkeypatch.setattr(whole_body, "gmr_frames", still)
    rows = {r["name"]: r for r in whole_body.measure("hrp2")}
    assert "hrp2_gmr_slip" not in rows, "it has no contacts of its own"
    assert rows["hrp2_gmr_slip_person"]["p99"] == 0 and rows["hrp2_gmr_floating_person"]["p99"] < 0.1
    assert rows["hrp2_gmr_slip_person"]["n"] == rows["hrp2_ours_slip_person"]["n"]
    assert rows["hrp2_ours_slip_person"]["p99"] >= rows["hrp2_ours_slip"]["p99"] - 1e-6
    assert rows["hrp2_gmr_penetration"]["p99"] == pytest.approx(0.0, abs=0.1)
    assert "since GMR plans none" in whole_body.notes(list(rows.values()))[1]

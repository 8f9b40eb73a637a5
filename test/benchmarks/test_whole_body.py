"""`humanoid bench whole_body`: rows of the solver's own frames."""

from dataclasses import replace

from humanoid_control.benchmarks.motion import whole_body
from test.walking_person import walking_person


def test_rows_tell_of_time_and_feet(monkeypatch):
    body = walking_person()[0]
    short = replace(body, positions=body.positions[:120], missing=body.missing.copy())
    monkeypatch.setattr(whole_body, "load_body_points", lambda motion: short)
    rows = {r["name"]: r for r in whole_body.measure("hrp2")}
    assert rows["hrp2_ours_live"]["n"] == 118 and 0 < rows["hrp2_ours_live"]["median"] < 1e5
    assert 0 <= rows["hrp2_ours_slip"]["p99"] < 1 and rows["hrp2_ours_penetration"]["n"] == 120
    assert len(whole_body.notes(list(rows.values()))) == 2

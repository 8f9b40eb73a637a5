"""`humanoid bench tendons`: its rows, and that the peer is given the same problem."""

import json
import sys

import numpy as np
import pytest

from evidence.benchmarks import tendons as bench_tendons
from evidence.benchmarks.page import SECTIONS
from evidence.benchmarks.tendons import NOISE, SIZES, KalmanUpdate, problem
from evidence.studies.kawaharazuka2018.experiments import TABLE_ONE
from humanoid_control.cli.main import main

ROWS = ["jmm_neck_s", "jmm_scapula_s", "jmm_shoulder_s", *(f"update_{size}" for size in SIZES)]


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(bench_tendons, "COUNTS", {g.name: (3,) * 8 for g in TABLE_ONE})
    monkeypatch.setattr(bench_tendons, "CALLS", 40)
    monkeypatch.setattr(bench_tendons, "STEPS", 40)
    monkeypatch.setattr(bench_tendons, "BUILDS", 2)


def test_the_grids_are_those_of_table_one():
    """T1a."""
    sizes = {g.name: int(np.prod(g.counts)) for g in TABLE_ONE}
    assert sizes == {"neck": 1_071_875, "scapula": 2_205_000, "shoulder": 2_646_000}
    assert all(len(g.counts) == len(set(g.joints)) == 8 and set(g.counts) <= {5, 6, 7, 8, 9} for g in TABLE_ONE)


def test_tendons_has_a_row_for_each_mapping_update_and_group(capsys, small):
    pytest.importorskip("filterpy")
    assert main(["bench", "tendons", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    rows = {r["name"]: r for r in said["rows"]}
    peers = [f"{peer}_{size}" for peer in ("filterpy", "information", "numba") for size in ("8x10", "60x80")]
    assert list(rows) == [*ROWS, *peers, "numba_60x80_dense", "three_groups", "three_groups_absolute"]
    neck = rows["jmm_neck_s"]
    assert (neck["data"], neck["degree"], neck["states"], neck["tendons"]) == (3**8, 5, 8, 10)
    assert neck["source"] == "8579 + 5514" and 0 < neck["lengths_s"] < neck["median"] and neck["peak_mb"] > 50
    assert [rows[f"update_{s}"]["crossed"] for s in SIZES] == [8, 6, 60, 6, 200]
    for name in ("update_8x10", "filterpy_60x80"):
        assert rows[name]["unit"] == "us" and rows[name]["n"] == 40
        assert 0 < rows[name]["best"] <= rows[name]["median"] <= rows[name]["p99"]
    groups = rows["three_groups"]
    assert groups["unit"] == "Hz" and groups["p99"] <= groups["median"] <= groups["best"]
    assert any("does not use the sparsity of H" in line for line in said["notes"])
    assert set(rows["update_8x10"]["ratios"]) == {"filterpy", "information", "numba"}
    assert "`numba_60x80`" in SECTIONS["tendons"](rows)
    assert neck["n"] == 2 and neck["goal"] == "< 20 s, < 4 GB" and neck["reached"] == "yes"
    assert rows["filterpy_8x10"]["goal"] == "" and rows["three_groups"]["goal"] == "> 2000 Hz"
    assert rows["update_8x10"]["goal"] == "< 1 us, 5 x peer"
    ours, peer = (rows[f"{who}_60x80"]["median"] for who in ("update", "filterpy"))
    assert abs(rows["update_60x80"]["ratio"] - peer / ours) < 0.06
    assert rows["update_60x80_dense"]["ratio"] == pytest.approx(peer / rows["update_60x80_dense"]["median"], abs=0.06)
    ours, peer = (rows[f"{who}_60x80_dense"] for who in ("update", "numba"))
    assert ours["ratios"]["numba"] == pytest.approx(peer["median"] / ours["median"], abs=0.06)


def test_a_goal_is_reached_where_the_median_is_on_its_side():
    def row(name, unit, median, peak=""):
        return {"name": name, "unit": unit, "median": median, "peak_mb": peak}

    rows = [
        row("jmm_neck_s", "s", 21.0, 100),
        row("jmm_scapula_s", "s", 19.0, 4100),
        row("jmm_shoulder_s", "s", 19.0, 10),
    ]
    rows += [row("update_8x10", "us", 0.9), row("filterpy_8x10", "us", 4.4), row("three_groups", "Hz", 1999.0)]
    rows += [row("update_60x80", "us", 19.0), row("filterpy_60x80", "us", 500.0)]
    bench_tendons.judge(rows)
    assert [r["reached"] for r in rows] == ["no", "no", "yes", "no", "", "no", "yes", ""]


@pytest.mark.nightly
def test_without_filterpy_its_rows_are_left_out_in_one_line(capsys, small, monkeypatch):
    monkeypatch.setitem(sys.modules, "filterpy", None)
    assert main(["bench", "tendons"]) == 0
    said = capsys.readouterr().out
    assert "filterpy_8x10" not in said and "three_groups" in said
    assert sum("filterpy is not installed" in line for line in said.splitlines()) == 1


def test_another_robot_is_refused_in_one_line(capsys):
    assert main(["bench", "tendons", "--robot", "hrp2"]) == 2
    assert "only kengoro_upper has" in capsys.readouterr().err
    assert main(["bench", "tendons", "--robot", "kengoro_uper"]) == 2
    assert "did you mean kengoro_upper" in capsys.readouterr().err


@pytest.mark.parametrize("option", [["--motion", "walk"], ["--seconds", "3"]])
def test_an_option_of_other_benches_is_refused(capsys, option):
    with pytest.raises(SystemExit) as end:
        main(["bench", "tendons", *option])
    assert end.value.code == 2
    assert f"{option[0]} is not for the bench 'tendons'" in capsys.readouterr().err


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("peer", ["filterpy", "information", "numba"])
def test_the_update_finds_what_the_peers_find(size, peer):
    """The same posterior, and the one that the information form gives: no tendon was left out."""
    if peer == "filterpy":
        pytest.importorskip("filterpy")
    given = problem(size)
    ours, theirs = KalmanUpdate(given), bench_tendons.PEERS[peer](given)
    for case in (ours, theirs):
        assert case() > 0 and case() > 0  # the second call begins where the first did
    P = np.linalg.inv(np.linalg.inv(given.P) + given.H.T @ given.H / NOISE**2)
    x = P @ given.H.T @ given.nu / NOISE**2
    for case in (ours, theirs):
        np.testing.assert_allclose(case.x, x, atol=1e-9)
        np.testing.assert_allclose(case.P, P, atol=1e-11)

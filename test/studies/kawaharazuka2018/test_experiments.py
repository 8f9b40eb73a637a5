"""Experiments of Kawaharazuka 2018, shortened: what each must show (T1 to T6), and the arms of others."""

import numpy as np
import pytest

from evidence.studies.kawaharazuka2018 import baselines as study_baselines
from evidence.studies.kawaharazuka2018 import experiments
from evidence.studies.kawaharazuka2018 import testbed as testbed_module
from evidence.studies.kawaharazuka2018.experiments import EXPERIMENTS, TABLE_ONE, chosen
from evidence.studies.kawaharazuka2018.other_arms import others
from evidence.studies.kawaharazuka2018.result import ErrorGoal, ResultRow, Runs, settled, spread, tail
from evidence.studies.kawaharazuka2018.sharing import BEYOND
from evidence.studies.kawaharazuka2018.testbed import HandPushes, TendonTestbed
from humanoid_control.errors import ConfigError
from humanoid_control.robots import load_robot


@pytest.fixture(scope="module")
def testbed():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(testbed_module, "ITERATIONS", 100)
        yield TendonTestbed(load_robot("kengoro_upper", "fixed"))


def rows_of(finding):
    return {r.name: r for r in finding.rows}


def test_errors_are_averaged_over_the_end_and_summed_up_over_the_seeds():
    errors = np.zeros((60, 2))
    errors[:10, 0], errors[48:, 1] = 5.0, -2.0
    assert np.allclose(tail(errors), [0.0, 2.0]) and np.allclose(settled(errors), [0.0, np.sqrt(48 / 50)])
    row = ResultRow("r", ("a", "b"), np.radians([[1.0, 2.0], [3.0, 9.0], [2.0, 4.0]]))
    assert np.allclose(row.median, [2.0, 4.0]) and np.allclose(row.worst, [3.0, 9.0])
    assert np.allclose(ResultRow("r", ("a",), np.array([[0.002]]), "mm").worst, 2.0)
    for goal, reached in (
        (None, None),
        (ErrorGoal(median=5), True),
        (ErrorGoal(median=4), False),
        (ErrorGoal(worst=9), False),
    ):
        assert ResultRow("r", row.joints, row.errors, goal=goal).reached is reached
    median, worst = spread([errors, -3 * errors])
    assert median[0] == 2.5 and worst[0] == 15.0 and worst[-1] == 6.0 and len(median) == 60


def test_e1_builds_the_three_groups(testbed, monkeypatch):
    """T1: with a reduced grid."""
    counts = {g.name: (5, 5, 4, 4, 3, 3, 3, 3) for g in TABLE_ONE} | {"scapula": (3, 3, 3, 3, 4, 4, 5, 5)}
    monkeypatch.setattr(experiments, "COUNTS", counts)
    found = EXPERIMENTS["E1"](testbed, Runs())
    table = found.table
    assert [(r.unit, r.joints, r.reached) for r in found.rows] == [
        (unit, ("neck", "scapula", "shoulder"), True) for unit in ("s", "GB")
    ]
    assert [(r["group"], r["data"], r["tendons"]) for r in table] == [
        (g.name, 32400, m) for g, m in zip(TABLE_ONE, (10, 8, 10), strict=True)
    ]
    assert all(r["length rms mm"] < 1.0 and r["arms rms %"] < 3.0 for r in table), table
    assert [r["source regression s"] for r in table] == [5514, 12885, 25287]


@pytest.mark.nightly
def test_e2_finds_every_joint(testbed):
    """T2."""
    found = rows_of(EXPERIMENTS["E2"](testbed, Runs(1, 120)))
    assert len(found["absolute, 0.1 mm"].joints) == 20
    assert found["absolute, no noise"].worst.max() < 0.5 and found["absolute, 0.1 mm"].worst.max() < 1.0
    assert found["absolute, 0.5 mm"].worst.max() < 3.0
    assert found["absolute, polynomials, 0.1 mm"].worst.max() < 2.0, "polynomials are allowed twice the error"


@pytest.mark.nightly
def test_e3_sharing_keeps_borrowed_angles_right(testbed):
    """T3b, and T3a with polynomials as in Kawaharazuka 2018; walking at random, and pushed under constant tensions."""
    found = EXPERIMENTS["E3"](testbed, Runs(1, 200))
    rows = rows_of(found)
    for plant in ("random walk", "pushed"):
        shared, alone = rows[f"{plant}: shared, cut-off 1e-3"], rows[f"{plant}: conventional, cut-off 1e-3"]
        assert shared.median[:4].max() < 5.0
        assert shared.median[4:].mean() < alone.median[4:].mean()
        table = {line["filter"]: line for line in found.table}
        vibrates, smooth = (table[f"{plant}: {kind}, polynomial, plain inverse"] for kind in ("conventional", "shared"))
        assert smooth["conventional for comparison"] > 2.0, "jitter"
        assert vibrates["borrowed 2 deg beyond limits %"] > 20.0 and smooth["borrowed 2 deg beyond limits %"] < 5.0
        assert rows[f"{plant}: shared, polynomial, plain inverse"].worst.max() < 5.0, "bounded"
    assert rows["random walk: shared, default"].worst.max() < 2.0, "a spike does not reach the angles"
    assert alone.joints[0] == "r_gh_roll" and shared.joints[0] == "l_gh_roll"
    assert len(found.table) == len(rows) == 16 and len(found.traces) == 3


def test_pushes_move_both_arms_alike_and_are_repeated(testbed):
    """E3's plant: symmetric as long as the head has not fallen to a side, the same for the same seed."""
    hands = HandPushes(testbed)
    q, lengths = hands.walk(60, 4)
    assert np.array_equal(hands.walk(60, 4)[0], q) and not np.array_equal(hands.walk(60, 5)[0], q)
    left, right = (
        [testbed.whole.joint_names.index(s + j[1:]) for j in (*testbed_module.SCAPULA, *testbed_module.ARM)]
        for s in "lr"
    )
    assert q[:, left] == pytest.approx(q[:, right], abs=1e-4) and np.ptp(q[:, left], axis=0).min() > 0.02
    low, high = testbed.whole.limits.T
    assert (q > low - BEYOND).all() and (q < high + BEYOND).all()
    assert lengths == pytest.approx(testbed.whole.lengths_of(q))


WRONG_ARMS = (", arms 2 % wrong", ", arms 5 % wrong")


def test_e4_absolute_stays_wrong_and_relative_converges(testbed):
    """T4."""
    found = EXPERIMENTS["E4"](testbed, Runs(1, 600))
    rows = rows_of(found)
    assert rows["absolute, wrong zero"].median[:3].min() > 10.0 and rows["relative as printed"].median.max() > 10.0
    assert rows["absolute, correct zero"].worst.max() < 1.0
    assert (
        all(rows[f"relative {k}"].median.max() < 2.0 for k in ("r2", "r3")) and rows["relative r1"].median.max() < 10.0
    )
    for kind in ("r2", "r3"):
        right, some, much = (rows[f"relative {kind}{w}"].median.max() for w in ("", *WRONG_ARMS))
        assert right < some < much < 10.0, "the more wrong the moment arms, the further off"
        assert right < rows[f"relative {kind}, polynomials"].median.max() < 3.0
    assert found.traces[0].actual.shape == (601, 4)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["E5", "E6"])
def test_learning_brings_relative_and_absolute_together(testbed, name):
    """T5, T6: less difference after the updater, nothing diverges; and the mapping is given back as it was."""
    before = {k: n.weights.W3.copy() for k, n in testbed._networks.items()}
    rows = rows_of(EXPERIMENTS[name](testbed, Runs(3, 400)))
    assert rows["r3, after"].errors.mean() < rows["r3, before"].errors.mean()
    assert np.median(rows["r3, before"].errors) < np.radians(40) and np.median(rows["r3, after"].errors) < np.radians(
        20
    )
    assert max(r.worst.max() for r in rows.values()) < 120.0
    for k, weights in before.items():
        assert np.array_equal(testbed._networks[k].weights.W3, weights)


@pytest.mark.nightly
def test_the_baselines_are_worse_and_larger_tables_better(testbed, monkeypatch):
    """TE-03, and the same data by a table, polynomials and a network."""
    for name, value in (("DATA", 2000), ("ROWS", 40_000), ("ITERATIONS", 60), ("DEGREE", 4), ("TIMED", 30)):
        monkeypatch.setattr(study_baselines, name, value)
    found = EXPERIMENTS["baselines"](testbed, Runs(1, 120))
    rows = rows_of(found)
    small, large = (rows[f"table search, {n} rows"].errors.mean() for n in ("2,000", "40,000"))
    polynomials, network = (rows[f"absolute, {kind}"].errors.mean() for kind in ("polynomials", "network"))
    exact = rows["absolute, geometry"]
    assert exact.reached and exact.errors.mean() < min(polynomials, network) and polynomials < np.radians(2)
    assert np.radians(15) > small > large > 2 * max(polynomials, network)
    assert [line["filter"] for line in found.table] == list(rows) and all(line["step us"] > 0 for line in found.table)


def test_arms_of_others_are_estimated(model_file):
    folder = model_file("muscles/cardsflow/VRpuppet/cardsflow.xml").parents[2]
    pytest.importorskip("mujoco", reason="needs the package mujoco as the plant")
    found = rows_of(others(folder, Runs(1, 300)))
    assert {name.split(",")[0] for name in found} == {
        "myoelbow_1dof6muscles",
        "myoelbow_2dof6muscles",
        "VRpuppet",
        "VRpuppet shifts",
    }
    assert all(row.worst.max() < 2.0 for row in found.values()), {n: r.worst for n, r in found.items()}


def test_what_cannot_be_run_is_said(monkeypatch, tmp_path):
    monkeypatch.delenv("HUMANOID_TEST_DATA", raising=False)
    assert chosen([], None) == (
        list(EXPERIMENTS),
        ["arm models of other authors are omitted: give their folder (models)"],
    )
    assert chosen(["e4", "Baselines", "E4"], None)[0] == ["E4", "baselines"]
    with pytest.raises(ConfigError, match=r"give the folder \(models\)"):
        chosen(["E4", "others"], None)
    with pytest.raises(ConfigError, match=r"give the folder \(models\)"):
        others(None, Runs(1, 50))
    with pytest.raises(ConfigError, match=r"no myoelbow_1dof6muscles\*.xml in"):
        others(tmp_path, Runs(1, 50))

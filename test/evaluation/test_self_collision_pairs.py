"""Table 4.3 of Dube 2012 (F19) and the grouping of Table 6.6."""

from collections import Counter

import pytest

from humanoid_control.evaluation.self_collision import (
    ARM_TORSO_COLUMNS,
    LIKELY,
    PAIR_TABLE,
    UNLIKELY,
    arm_torso_column,
    likelihood,
    segment_of,
)
from humanoid_control.robots import CATALOGUE, load_robot

MIRROR = {"UA_l": "UA_r", "LA_l": "LA_r", "T_l": "T_r", "L_l": "L_r", "B": "B", "HN": "HN"}
MIRROR |= {v: k for k, v in MIRROR.items()}


def test_28_pairs_are_likely_and_12_unlikely():
    assert Counter(PAIR_TABLE.values()) == {LIKELY: 28, UNLIKELY: 12}


def test_the_table_is_its_own_mirror_image():
    for pair, mark in PAIR_TABLE.items():
        assert PAIR_TABLE[frozenset(MIRROR[s] for s in pair)] == mark


def test_segments_joined_at_elbow_or_knee_are_not_tested():
    for side in "lr":
        assert frozenset((f"UA_{side}", f"LA_{side}")) not in PAIR_TABLE
        assert frozenset((f"T_{side}", f"L_{side}")) not in PAIR_TABLE
    assert frozenset(("B", "HN")) not in PAIR_TABLE


@pytest.mark.parametrize(
    "one, two, expected",
    [
        ("l_hand", "upper_torso", LIKELY),
        ("r_lower_arm", "l_upper_arm", LIKELY),
        ("l_foot", "r_shank", LIKELY),
        ("l_thigh", "lower_torso", UNLIKELY),
        ("r_upper_arm", "l_shank", UNLIKELY),
        ("r_hand", "l_shank", LIKELY),
        ("head", "left_lower_arm", LIKELY),
        ("l_upper_arm", "l_lower_arm", None),
        ("upper_torso", "lower_torso", None),
        ("l_clavicle", "r_hand", None),
        ("platform", "l_hand", None),
    ],
)
def test_likelihood_of_named_shapes(one, two, expected):
    assert likelihood(one, two) == likelihood(two, one) == expected


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_shape_of_the_robots_is_known_or_knowingly_left_out(name):
    for item in load_robot(name).shapes:
        bare = item.name.removeprefix("l_").removeprefix("r_")
        assert (segment_of(item.name) is None) == (bare in ("clavicle", "girdle", "platform", "pedestal", "column"))


@pytest.mark.parametrize("name", CATALOGUE)
def test_robots_watch_every_arm_torso_pair_of_the_table(name):
    """Table 6.6 can be counted on each robot: all four columns, both sides, save what a joint keeps apart."""
    robot = load_robot(name)
    names = [s.name for s in robot.shapes]
    columns = Counter(arm_torso_column(names[i], names[j]) for i, j in robot.pairs)
    for column in ARM_TORSO_COLUMNS:
        assert columns[column] >= 2, (column, columns)


def test_only_arms_against_the_torso_have_a_column():
    assert arm_torso_column("upper_torso", "l_hand") == "lower arm - upper torso"
    assert arm_torso_column("r_upper_arm", "lower_torso") == "upper arm - lower torso"
    assert arm_torso_column("l_hand", "r_hand") is None
    assert arm_torso_column("upper_torso", "l_thigh") is None
    assert arm_torso_column("upper_torso", "lower_torso") is None

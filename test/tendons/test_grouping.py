"""Automatic grouping from the Jacobian's structure (TE-20)."""

import numpy as np
import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.tendons import joint_owners
from humanoid_control.tendons.estimator.grouping import _blind, find_groups
from humanoid_control.tendons.mappings.postures import random_postures
from test.reference.straight_tendons import GIRDLE_JOINTS, GIRDLE_LIMITS, GIRDLE_MUSCLES, SHOULDER, girdle

POSTURES = random_postures(GIRDLE_LIMITS, 60)


def blocks(rng, sizes, muscles_each):
    """Jacobians of limbs that share no tendon, with joints and tendons shuffled; and each joint's limb."""
    limb = np.repeat(np.arange(len(sizes)), sizes)
    home = np.repeat(np.arange(len(sizes)), muscles_each)
    limb, home = rng.permutation(limb), rng.permutation(home)
    J = rng.uniform(0.01, 0.05, (30, len(home), len(limb))) * rng.choice([-1, 1], (30, len(home), len(limb)))
    return J * (home[:, None] == limb[None]), limb


@pytest.mark.parametrize("seed", range(4))
def test_limbs_that_share_no_tendon_become_groups_of_their_own(seed):
    rng = np.random.default_rng(seed)
    J, limb = blocks(rng, (4, 3, 5), (8, 5, 9))
    joints, muscles = [f"j{k}" for k in range(12)], [f"m{k}" for k in range(22)]
    found = find_groups(J, joints, muscles, np.tile([-1.0, 1.0], (12, 1)))
    wanted = {frozenset(f"j{k}" for k in np.flatnonzero(limb == b)) for b in range(3)}
    assert {frozenset(g.own) for g in found.groups} == wanted
    assert all(not g.borrow for g in found.groups) and not found.neglected and not found.blind


def test_scapula_and_shoulder_are_told_apart_as_the_source_does():
    found = find_groups(girdle(POSTURES)[1], GIRDLE_JOINTS, GIRDLE_MUSCLES, GIRDLE_LIMITS, 7)
    assert [g.own for g in found.groups] == [GIRDLE_JOINTS[:4], GIRDLE_JOINTS[4:]] and not found.blind


def test_a_whole_arm_within_the_limit_is_one_group():
    found = find_groups(girdle(POSTURES)[1], GIRDLE_JOINTS, GIRDLE_MUSCLES, GIRDLE_LIMITS, 8)
    assert len(found.groups) == 1 and found.groups[0].own == GIRDLE_JOINTS and not found.blind


@pytest.mark.parametrize("most", [7, 6, 5])
def test_every_joint_has_one_owner_and_every_tendon_one_group(most):
    J = girdle(POSTURES)[1]
    found = find_groups(J, GIRDLE_JOINTS, GIRDLE_MUSCLES, GIRDLE_LIMITS, most)
    groups = [g for g in found.groups if g.tendons]
    assert sorted(joint_owners(groups)) == sorted(GIRDLE_JOINTS)
    assert sorted(m for g in groups for m in g.tendons) == sorted(GIRDLE_MUSCLES)
    arms = np.abs(J).max(axis=0)
    for g in groups:
        assert len(g.joints) <= most
        left_out = {joint for name, joint, _ in found.neglected if name == g.name}
        rows = [GIRDLE_MUSCLES.index(m) for m in g.tendons]
        crossed = {GIRDLE_JOINTS[j] for j in np.flatnonzero(arms[rows].max(axis=0) >= 3e-3)}
        assert crossed - set(g.own) == set(g.borrow) | left_out
    for name, joint, size in found.neglected:  # the least important ones are left out first
        g = next(g for g in groups if g.name == name)
        rows = [GIRDLE_MUSCLES.index(m) for m in g.tendons]
        kept = [arms[rows, GIRDLE_JOINTS.index(j)].max() for j in g.borrow]
        assert size > 0 and min(kept, default=1.0) >= arms[rows, GIRDLE_JOINTS.index(joint)].max()


def test_a_joint_that_no_tendon_moves_is_refused():
    J = girdle(POSTURES)[1][:, [GIRDLE_MUSCLES.index(m) for m in SHOULDER]]
    J[:, :, 7] = 0.0
    with pytest.raises(ConfigError, match="no tendon moves joint 'elbow_pitch'"):
        find_groups(J, GIRDLE_JOINTS, tuple(SHOULDER), GIRDLE_LIMITS)


def test_a_group_is_blind_where_most_postures_leave_a_direction_unseen_whichever_comes_first():
    rng, arms, own = np.random.default_rng(4), np.ones((3, 2)), [[0, 1]]
    seeing = rng.normal(size=(61, 3, 2))
    unseen = seeing[:, :, :1] * [1.0, -2.0]
    for few in (1, 12):
        first, last = np.concatenate([unseen[:few], seeing[few:]]), np.concatenate([seeing[:few], unseen[few:]])
        assert not _blind(first, arms, own, 0) and _blind(last, arms, own, 0)
    assert _blind(seeing[:, :1], arms[:1], own, 0), "one tendon cannot see two joints"

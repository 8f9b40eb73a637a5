"""Policies on simulated robots: the public ones walk and dance in both engines, with and without the gate."""

import functools
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="needs the extra 'policy': pip install 'humanoid_control[policy]'")
pytest.importorskip("onnx")
pytest.importorskip("mujoco")

from humanoid_control.cli.main import main
from humanoid_control.errors import ClipError, ConfigError, PolicyError
from humanoid_control.policy import (
    Command,
    FreezeOnSpeed,
    PolicyPlayer,
    TargetRateLimit,
    TorqueGate,
    load_motion,
    load_policy,
    play,
    policy_engine,
)
from humanoid_control.policy.player import LOOP, quasi_direct_armature
from test.robots_under_test import nightly

DESCRIPTIONS = Path(__file__).parent / "descriptions"
TWIST2 = Path(__file__).parents[2] / "config" / "policies" / "twist2.yaml"
WALKERS = {
    "ppo": ("holosoma/ppo_g1_29dof.onnx", None),
    "sac": ("holosoma/fastsac_g1_29dof.onnx", None),
    "lab": ("unitree_rl_lab_g1_velocity/params/deploy.yaml", None),
    "agile": ("agile_leapp/unitree_g1_velocity_e2e.yaml", None),
    "falcon": ("falcon/dec_loco_g1_29dof.onnx", DESCRIPTIONS / "falcon.yaml"),
    "playground": ("mujoco_playground/g1_policy.onnx", DESCRIPTIONS / "mujoco_playground.yaml"),
}
MOTIONS = ("accad_swing", "walk_001", "walk_003", "walk_005", "walk_007", "walk_008")  # the first two by MuJoCo


@pytest.fixture(scope="module")
def walker(model_file, g1):
    """Return a function that gives a policy of `WALKERS`, each loaded once."""
    kept = {}

    def load(name):
        if name not in kept:
            file, described = WALKERS[name]
            path = model_file(f"policies/{file}")
            kept[name] = load_policy(described or path, g1, path if described else None)
        return kept[name]

    return load


@pytest.fixture(scope="module")
def tracker(model_file, g1):
    """TWIST2's tracker."""
    return load_policy(TWIST2, g1, model_file("policies/twist2/twist2_1017_20k.onnx"))


def walked(policy, engine, limiter=None, seconds=5.0, velocity=(0.5, 0.0, 0.0)):
    """Report of a walk that begins after a second."""
    player = PolicyPlayer(policy, policy_engine(policy.robot, engine), limiter)

    def each(p):
        p.command = Command(velocity if p.engine.time >= 1.0 else (0.0, 0.0, 0.0))

    return play(player, seconds, each)


@pytest.fixture(scope="module")
def unlimited(walker):
    """Return a function that gives the report of a walk without any limiter, each made once."""
    return functools.cache(lambda name, engine: walked(walker(name), engine))


def gate_of(robot):
    return TorqueGate(robot, quasi_direct_armature(robot))


@pytest.mark.parametrize(
    ("name", "engine"),
    [
        (n, e) if (e == "multibody" and n != "playground") or n == "lab" else nightly(n, e)
        for n in WALKERS
        for e in ("multibody", "mujoco")
    ],
)
def test_public_policies_walk_unedited(unlimited, name, engine):
    report = unlimited(name, engine)
    assert report.fell is None and not report.stopped and report.seconds == pytest.approx(5.0)
    assert 1.0 < report.distance < 3.5 and report.velocity_error < 0.4


@pytest.mark.parametrize("engine", ["multibody", nightly("mujoco")])
@pytest.mark.parametrize("name", ["ppo", "lab", "agile"])
def test_none_falls_for_the_gate_and_limits_hold(walker, unlimited, g1, name, engine):
    raw, gated = unlimited(name, engine), walked(walker(name), engine, gate_of(g1))
    assert gated.fell is None and gated.range_excess.max() <= 0.02 and gated.speed_share.max() <= 1.0
    assert gated.self_distance > -0.005 and gated.range_excess.max() <= max(raw.range_excess.max(), 0.005)
    if name == "ppo":  # nothing acts: the very same run
        assert gated.gate["any rule"] == 0.0 and gated.distance == raw.distance
        assert np.array_equal(gated.observed, raw.observed)


@pytest.mark.nightly
def test_the_dance_of_a_network_is_danced(model_file, g1):
    policy = load_policy(model_file("policies/holosoma/fastsac_g1_29dof_dancing.onnx"), g1)
    for limiter in (None, gate_of(g1)):
        report = walked(policy, "multibody", limiter, 12.0)
        assert report.fell is None and report.joint_error < 0.12


def test_a_dance_with_a_wrong_action_scale_falls(model_file, g1):
    from dataclasses import replace

    from humanoid_control.policy import Policy, examine, read_policy

    model, network = read_policy(model_file("policies/holosoma/fastsac_g1_29dof_dancing.onnx"))
    wrong = examine(replace(model, scale=np.full(29, 0.25)), network, g1)
    report = walked(Policy(wrong, g1), "multibody", None, 12.0)
    assert report.fell is not None and report.fell < 12.0


@pytest.mark.parametrize("motion", [m if m in ("accad_swing", "walk_005") else nightly(m) for m in MOTIONS])
def test_twist2_follows_its_motions(tracker, model_file, g1, motion):
    found = load_motion(model_file(f"policies/twist2/{motion}.pkl"), g1, tracker.model.joints)
    engine = "mujoco" if motion in MOTIONS[:2] else "multibody"
    player = PolicyPlayer(tracker, policy_engine(g1, engine), gate_of(g1))
    tracker.reference.follow(found)
    report = play(player, min(8.0, len(found.joints) / found.rate))
    assert report.fell is None and report.joint_error < 0.13


@pytest.mark.nightly
def test_limits_on_targets_fell_what_the_gate_lets_walk(walker, g1):
    """A PD target is a torque: limits of its speed and acceleration take away the balance."""
    falls = [walked(walker(n), "multibody", TargetRateLimit(g1, LOOP, 20.0, 0.5)).fell for n in ("lab", "agile", "sac")]
    assert None not in falls, falls


@pytest.mark.nightly
def test_a_freeze_is_a_fall_by_design(walker, g1):
    """A joint that passes a share of its speed limit in an ordinary walk ends it."""
    limiter = FreezeOnSpeed(g1, 0.25)
    report = walked(walker("sac"), "multibody", limiter, 8.0)
    assert limiter.frozen and report.fell is not None


@pytest.mark.nightly
def test_the_loop_holds_joints_that_a_policy_does_not_drive(walker, g1):
    policy = walker("agile")
    player = PolicyPlayer(policy, policy_engine(g1, "multibody"))
    play(player, 3.0)
    arms = [k for k, j in enumerate(g1.joint_names) if "elbow" in j or "shoulder" in j]
    assert np.abs(player.engine.joints[arms] - policy.rest[arms]).max() < 0.2


def test_pd_acts_at_once_when_a_target_comes(walker, g1):
    """From observation to torque no period is added: the first PD step after a step of the policy uses its targets."""
    policy = walker("ppo")
    player = PolicyPlayer(policy, policy_engine(g1, "multibody"))
    seen, torque = [], player.limiter.torque
    player.limiter.torque = lambda t, q, v: seen.append((t.q.copy(), player.engine.time)) or torque(t, q, v)
    player.step()
    assert len(seen) == round(policy.period / LOOP) and seen[0][1] == 0.0
    assert all(np.array_equal(q, policy._targets.q) for q, _ in seen)


def test_a_rate_that_does_not_fit_the_loop_is_refused(walker, g1):
    with pytest.raises(ConfigError, match="do not fit 500 Hz loops"):
        PolicyPlayer(walker("ppo"), policy_engine(g1, "multibody", step=0.003))


# -------- Motions of files


def arrays(n=29, frames=5, **changed):
    q = np.zeros((frames, n))
    given = {
        "fps": 30.0,
        "root_pos": np.zeros((frames, 3)),
        "root_rot": np.tile([0, 0, 0, 1.0], (frames, 1)),
        "dof_pos": q,
    }
    return given | changed


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"fps": 0.0}, "a rate of 1 to 1000 Hz"),
        ({"root_rot": np.zeros((5, 4))}, "unit quaternions"),
        ({"root_pos": np.zeros((4, 3))}, "the same number of frames"),
        ({"dof_pos": np.full((5, 29), np.nan)}, "finite arrays"),
        ({"dof_pos": np.zeros((5, 23))}, "23 joints for 29 names: it belongs to another robot"),
        ({"joint_names": np.array(["a"] * 29)}, "no joint 'left_hip_pitch_joint'"),
    ],
)
def test_wrong_motions_are_named(g1, tmp_path, changed, says):
    np.savez(tmp_path / "m.npz", **arrays(**changed))
    with pytest.raises(PolicyError, match=says):
        load_motion(tmp_path / "m.npz", g1, g1.joint_names)


def test_a_table_of_numbers_is_a_motion_in_the_order_of_the_urdf(model_file, g1, tmp_path, tracker):
    path = model_file("policies/rl_sar/dance_102/G1_Take_102.bvh_60hz.csv")
    motion, rows = load_motion(path, g1, tracker.model.joints), np.loadtxt(path, delimiter=",")
    assert motion.rate == 60.0 and np.array_equal(motion.position, rows[:, :3])
    assert np.allclose(np.linalg.norm(motion.quaternion, axis=1), 1.0, atol=1e-3)
    for k, joint in enumerate(tracker.model.joints):
        assert np.array_equal(motion.joints[:, k], rows[:, 7 + g1.index[joint]])
    np.savetxt(tmp_path / "walk.csv", rows[:50], delimiter=",")
    assert load_motion(tmp_path / "walk.csv", g1, tracker.model.joints).rate == 30.0
    np.savetxt(tmp_path / "short.csv", rows[:50, :-1], delimiter=",")
    with pytest.raises(PolicyError, match=r"35 columns of numbers: a motion of .* has 36"):
        load_motion(tmp_path / "short.csv", g1, tracker.model.joints)
    bad = rows[:50].copy()
    bad[3, 9] = np.nan
    np.savetxt(tmp_path / "bad.csv", bad, delimiter=",")
    with pytest.raises(PolicyError, match="finite arrays"):
        load_motion(tmp_path / "bad.csv", g1, tracker.model.joints)
    (tmp_path / "people.csv").write_text("frame,l_hip,x\n1,2,3\n")  # a table of markers: of a person
    with pytest.raises(ClipError):
        load_motion(tmp_path / "people.csv", g1, tracker.model.joints)


def test_motions_are_taken_by_the_names_of_their_joints(g1, tmp_path):
    order = np.random.default_rng(1).permutation(29)
    names = np.array(g1.joint_names)[order]
    np.savez(tmp_path / "m.npz", **arrays(dof_pos=np.tile(np.arange(29.0), (5, 1)), joint_names=names))
    motion = load_motion(tmp_path / "m.npz", g1, g1.joint_names)
    assert np.array_equal(motion.joints[0][order], np.arange(29.0)) and motion.rate == 30.0


def test_a_pickle_that_is_a_program_is_not_run(g1, tmp_path):
    (tmp_path / "m.pkl").write_bytes(b"cos\nsystem\n(S'touch /tmp/never_policy'\ntR.")
    with pytest.raises(ClipError, match="which arrays do not need"):
        load_motion(tmp_path / "m.pkl", g1, g1.joint_names)
    assert not Path("/tmp/never_policy").exists()


# -------- The command


def test_the_command_plays_and_compares(model_file, g1_urdf, capsys):
    path = model_file("policies/holosoma/fastsac_g1_29dof.onnx")
    words = ["policy", str(path), "--robot", str(g1_urdf), "--play", "--seconds", "2", "--command", "0.5 0 0"]
    assert main([*words, "--limiter", "gate,none"]) == 0
    out = capsys.readouterr().out
    for word in ("fell at", "gate active: pairs", "speed / limit, largest", "none", "observations ranged from"):
        assert word in out
    assert main([*words, "--engine", "mujoco", "--json"]) == 0
    assert '"fell": null' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--play", "--play needs a robot"),
        ("--seconds 5", "--seconds applies to a run in a simulator"),
        ("--play --robot {g1} --clip x.pkl", "--clip applies to trackers of any motion"),
        ("--play --robot {g1} --command 1,2", "--command must be three numbers"),
        ("--play --robot {g1} --seconds 0", "--seconds must be between 0.1 and 3600"),
        ("--play --robot {g1} --limiter fast", "unknown limiter 'fast'"),
    ],
)
def test_options_that_do_not_go_together_are_named(model_file, g1_urdf, capsys, words, says):
    path = model_file("policies/holosoma/fastsac_g1_29dof.onnx")
    assert main(["policy", str(path), *words.format(g1=g1_urdf).split()]) == 2
    assert says in capsys.readouterr().err

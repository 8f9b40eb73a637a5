"""The fit against OpenSim's on its own problems, against finite differences, and on markers whose truth is known."""

import numpy as np
import pytest

from humanoid_control.errors import ClipError, ConfigError, SizeError, UnknownNameError
from humanoid_control.human import FitSettings, FitTasks, Marker, fit, read_ik_setup, read_osim
from humanoid_control.human.kinematics import make_pose
from humanoid_control.human.marker_equations import Prior, build, lay_out_markers, make_equations
from humanoid_control.human.marker_fit import Fit
from humanoid_control.human.models import own_person
from humanoid_control.mocap import load_clip

PLAIN = FitSettings(outliers=0.0, swaps=False)
WALK, RUN, GAIT, TESTS = "rajagopal_walk", "rajagopal_run", "gait2354_walk", "opensim_core_tests/ik"
CASES = {
    "walk": (f"{WALK}/computed_opensim46/subject_scaled_walk.osim", f"{WALK}/motion_capture_walk.trc",
             f"{WALK}/ik_setup_walk.xml", f"{WALK}/computed_opensim46/ik_accuracy_1e-5.mot"),
    "run": (f"{RUN}/computed_opensim46/subject_scaled_run.osim", f"{RUN}/motion_capture_run.trc",
            f"{RUN}/ik_setup_run.xml", f"{RUN}/computed_opensim46/ik_accuracy_1e-4.mot"),
    "run to 1e-9": (f"{RUN}/computed_opensim46/subject_scaled_run.osim", f"{RUN}/motion_capture_run.trc",
                    f"{RUN}/ik_setup_run.xml", f"{RUN}/computed_opensim46/ik_0.83-1.33s_accuracy_1e-09.mot"),
    "gait2354": (f"{GAIT}/reference/subject01_simbody.osim", f"{GAIT}/subject01_walk1.trc",
                 f"{GAIT}/subject01_Setup_IK.xml", f"{GAIT}/reference/subject01_walk1_ik.mot"),
    "testIK": (f"{TESTS}/subject01_simbody_converted_40600.osim", f"{TESTS}/subject01_synthetic_marker_data.trc",
               f"{TESTS}/subject01_Setup_InverseKinematics.xml", f"{TESTS}/std_subject01_walk1_ik.mot"),
}  # fmt: skip


def times_of(trc):
    """Time column of a TRC file, which does not begin at zero."""
    rows = [line.split("\t") for line in trc.read_text().splitlines()[5:]]
    return np.array([float(row[1]) for row in rows if row[0].strip().isdigit()])


@pytest.fixture(scope="session")
def opensim_case(human_motion, tables):
    """Return a function that gives person, markers and labels, tasks, and OpenSim's q of the same frames."""

    def case(name):
        model, trc, setup, found = (human_motion(path) for path in CASES[name])
        person, clip, table = read_osim(model), load_clip(trc), tables.read(found)
        times = times_of(trc)
        frames = [int(np.argmin(np.abs(times - t))) for t in table["time"]]
        assert np.allclose(times[frames], table["time"], atol=1e-3)
        return person, clip.positions[frames], clip.labels, read_ik_setup(setup, person), tables.q(person, table)

    return case


def cost_of(person, markers, labels, result, tasks, q):
    """Cost of coordinates beside the markers and tasks of a fit."""
    own = [m for m in person.markers if m.name in result.labels]
    measured = np.stack([markers[:, labels.index(m.name)] for m in own], axis=1)
    cost = 0.5 * np.nansum(result.weights * ((person.with_markers(own).marker_positions(q) - measured) ** 2).sum(2), 1)
    for name, task in tasks.coordinates.items():
        cost += 0.5 * task.weight * result.weights.sum(1).mean() * (q[:, person.index(name)] - task.value) ** 2
    return cost


# Largest difference of angles [deg]: OpenSim's published fits are less converged than this one.
@pytest.mark.parametrize(
    "name, angle", [("walk", 90), ("run", 90), ("run to 1e-9", 0.01), ("gait2354", 0.13), ("testIK", 0.02)]
)
def test_no_frame_costs_more_than_opensims(opensim_case, name, angle):
    person, markers, labels, tasks, q = opensim_case(name)
    result = fit(person, markers, labels, tasks, PLAIN)
    theirs = cost_of(person, markers, labels, result, tasks, q)
    assert np.allclose(result.cost, cost_of(person, markers, labels, result, tasks, result.q), rtol=1e-6, atol=1e-15)
    assert (result.cost <= theirs * (1 + 1e-6)).all() and (result.reason == 0).all()
    difference = np.rad2deg(np.abs(result.q - q))[:, person.rotational]
    assert difference.max() <= angle
    if name == "testIK":
        assert np.sqrt((difference**2).mean()) <= 0.009 and result.rms.max() < 2e-5
    lower = np.array([c.lower if c.clamped else -np.inf for c in person.coordinates])
    assert (result.q >= lower - 1e-12).all() and result.steps.mean() < 6


def test_the_first_frame_is_found_from_any_heading_and_place(walker):
    rng = np.random.default_rng(4)
    labels = [m.name for m in walker.markers]
    free = np.array([not c.locked for c in walker.coordinates])
    for heading in (0.0, 1.5, -1.4):
        q = walker.rest + np.where(free & walker.rotational, rng.uniform(0.05, 0.4, walker.n), 0.0)
        q[walker.index("pelvis_rotation")], q[walker.index("pelvis_tx")] = heading, -3.0
        markers = walker.marker_positions(q)
        result = fit(walker, np.repeat(markers, 2, axis=0), labels)
        assert result.worst.max() < 1e-6 and np.abs(result.q - q).max() < 1e-5


@pytest.mark.parametrize("whose", ["OpenSim's", "our own"])
def test_gradient_and_hessian_are_those_of_the_cost(whose, request):
    """Also where vertebrae one behind the other share a coordinate: our own person's spine."""
    walker = own_person(1.75, markers="cmu41").person if whose == "our own" else request.getfixturevalue("walker")
    rng, h = np.random.default_rng(5), 1e-6
    chain = walker.chain.record
    free = np.array([not c.locked for c in walker.coordinates])
    bodies = np.array([walker.body_index(m.body) for m in walker.markers])
    places = np.array([m.place for m in walker.markers])
    infinite = np.full(walker.n, np.inf)
    layout = lay_out_markers(chain, bodies, places, free, (-infinite, infinite))
    n, work = len(layout.entry), (make_pose(chain), make_equations(chain, layout))
    assert n == free.sum() == (47 if whose == "our own" else 29)
    for knee in (-0.3, 0.0, 1.1, 2.4):  # before, at an end of, within and behind the splines
        q = rng.uniform(-0.5, 0.5, walker.n)
        q[walker.index("knee_angle_l")] = knee
        prior = Prior(rng.uniform(0, 1, n), rng.uniform(-1, 1, n), 0.01, q + 0.1)
        target = walker.marker_positions(q + rng.uniform(-0.3, 0.3, walker.n))[0]
        weight = rng.uniform(0.5, 2.0, len(bodies)) * (np.arange(len(bodies)) != 3)
        measured = (target, weight, target.mean(axis=0))

        def at(x, exact=True, measured=measured, prior=prior):
            cost, _ = build(chain, layout, work, x, measured, prior, exact)
            return cost, work[1].g.copy(), np.tril(work[1].H)

        moves = [h * np.eye(walker.n)[c] for c in layout.entry]
        if knee == 0.0:  # the third derivative jumps there
            moves = [m for m, c in zip(moves, layout.entry, strict=True) if c != walker.index("knee_angle_l")]
        keep = [k for k, c in enumerate(layout.entry) if knee != 0.0 or c != walker.index("knee_angle_l")]
        _, g, H = at(q)
        slope = np.array([(at(q - m)[0] - at(q + m)[0]) / (2 * h) for m in moves])
        assert np.allclose(g[keep], slope, atol=1e-7)
        curvature = np.array([(at(q - m)[1] - at(q + m)[1]) / (2 * h) for m in moves])[:, keep]
        assert np.allclose(H[np.ix_(keep, keep)], np.tril(curvature), atol=1e-6)
        both = (walker.marker_positions(q + s * m)[0] for m in moves for s in (1, -1))
        J = np.array([(a - b) / (2 * h) for a, b in zip(both, both, strict=True)])
        gauss = np.einsum("cmi,dmi,m->cd", J, J, weight) + np.diag(prior.u + prior.hold)[np.ix_(keep, keep)]
        assert np.allclose(at(q, False)[2][np.ix_(keep, keep)], np.tril(gauss), atol=1e-6)


def walk_of(person, frames=120, seed=6):
    """Smooth coordinates within the ranges, and their markers."""
    rng, t = np.random.default_rng(seed), np.linspace(0, 2 * np.pi, frames)[:, None]
    lower = np.array([max(c.lower, -1.0) for c in person.coordinates])
    upper = np.array([min(c.upper, 1.0) for c in person.coordinates])
    q = (lower + upper) / 2 + 0.3 * (upper - lower) * np.sin(t + rng.uniform(0, 6, person.n))
    q = np.where([c.locked for c in person.coordinates], person.rest, q)
    return q, person.marker_positions(q)


def test_without_noise_the_coordinates_come_back_and_units_and_places_change_nothing(walker):
    q, markers = walk_of(walker)
    labels = [m.name for m in walker.markers]
    result = fit(walker, markers, labels)
    assert result.worst.max() <= 1e-6 and np.abs(result.q - q).max() < 1e-5 and not result.warnings
    # The order of markers, the unit of their weights and another place of the person do not matter.
    order = np.random.default_rng(7).permutation(len(labels))
    noisy = markers + np.random.default_rng(8).normal(0, 0.005, markers.shape)
    plain = fit(walker, noisy, labels)
    same = fit(walker, noisy[:, order], [labels[k] for k in order], FitTasks(others=1e4))
    away = fit(walker, noisy + [2.0, 0.7, 1.0], labels)
    assert np.allclose(plain.q, same.q, atol=2e-6) and np.allclose(plain.std, same.std, rtol=1e-3)
    assert np.allclose(plain.q[:, walker.rotational], away.q[:, walker.rotational], atol=2e-6)
    assert np.allclose(plain.rms, away.rms, atol=1e-8)


def test_the_stated_deviation_covers_the_errors_of_noisy_markers(walker):
    q, markers = walk_of(walker, frames=400)
    noisy = markers + np.random.default_rng(9).normal(0, 0.005, markers.shape)
    result = fit(walker, noisy, [m.name for m in walker.markers], None, PLAIN)
    free = np.array([not c.locked for c in walker.coordinates])
    error, std = np.abs(result.q - q)[:, free], result.std[:, free]
    assert 0.94 <= (error <= 2 * std).mean() <= 0.97 and 0.6 <= (error <= std).mean() <= 0.75
    assert (result.std[:, ~free] == 0).all()
    # Not by some great deviation: five times less noise gives five times less of it.
    quiet = fit(walker, markers + (noisy - markers) / 5, [m.name for m in walker.markers], None, PLAIN)
    assert np.median(quiet.std[:, free] / std) == pytest.approx(0.2, rel=0.02)


def test_missing_markers_and_a_limb_that_nothing_shows(walker):
    q, markers = walk_of(walker)
    labels = [m.name for m in walker.markers]
    gone = markers.copy()
    gone[10:30, labels.index("R.Knee")] = np.nan
    gone[50] = np.nan
    arm = [k for k, m in enumerate(walker.markers) if m.body in ("humerus_l", "ulna_l", "radius_l", "hand_l")]
    gone[:, arm] = np.nan
    result = fit(walker, gone, labels)
    hidden = [walker.index(f"{c}_l") for c in ("arm_flex", "arm_add", "arm_rot", "elbow_flex", "pro_sup")]
    assert np.allclose(result.q[:, hidden], walker.rest[hidden], atol=1e-9) and result.unseen[:, hidden].all()
    others = [k for k in range(walker.n) if k not in hidden]
    seen = np.arange(len(q)) != 50
    assert np.abs(result.q[seen][:, others] - q[seen][:, others]).max() < 1e-5
    assert result.reason[50] == 3 and np.isnan(result.rms[50]) and np.isinf(result.std[50, others[0]])
    assert np.isfinite(result.q).all() and np.allclose(result.q[50], result.q[49])
    assert any("pro_sup_l" in warning and "held at rest" in warning for warning in result.warnings)


def test_outliers_count_less_and_swaps_are_undone(walker):
    _, markers = walk_of(walker)
    rng, labels = np.random.default_rng(10), [m.name for m in walker.markers]
    noisy = markers + rng.normal(0, 0.002, markers.shape)
    bad = noisy.copy()
    bad[40, labels.index("R.Heel")] += [0.0, 0.15, 0.0]
    swapped = [labels.index(name) for name in ("R.Knee", "L.Knee")]
    bad[70:75, swapped] = bad[70:75, swapped[::-1]]
    clean, plain, robust = (fit(walker, x, labels, None, s) for x, s in ((noisy, None), (bad, PLAIN), (bad, None)))
    ankle = walker.index("ankle_angle_r")
    errors = [np.abs(r.q - clean.q)[[40, 72]][:, [ankle, walker.index("knee_angle_r")]] for r in (plain, robust)]
    assert errors[0].max() > 0.04 and errors[1].max() < 0.01
    assert np.abs(robust.q[70:75] - clean.q[70:75]).max() < 1e-3
    assert robust.weights[40, robust.labels.index("R.Heel")] < 0.3
    told = " ".join(robust.warnings)
    assert "R.Knee and L.Knee were swapped in 5 frame(s)" in told and "have less weight" in told


def test_left_for_right_throughout_is_told(walker):
    _, markers = walk_of(walker, frames=10)
    labels = [m.name for m in walker.markers]
    other = [("L" if n[0] == "R" else "R") + n[1:] if n[1] == "." else n for n in labels]
    order = [labels.index(n) if n in labels else k for k, n in enumerate(other)]
    told = fit(walker, markers[:, order], labels).warnings
    assert any("swapped throughout" in warning for warning in told)


def test_gimbal_lock_is_told_and_angles_do_not_jump(small_person):
    person = small_person()
    places = {"a": [0.2, 0, 0], "b": [0, 0.2, 0], "c": [0, 0, 0.2]}
    markers = [Marker(name, "trunk", np.array(p)) for name, p in places.items()]
    markers += [Marker(n, "shank", np.array(p)) for n, p in (("n", [0.1, -0.2, 0.03]), ("o", [0.0, -0.3, 0.1]))]
    person = person.with_markers(markers)
    q = np.zeros((80, person.n))
    q[:, 0] = np.linspace(0, 15.0, 80)  # more than two turns
    q[:, 1] = np.linspace(0.0, 1.55, 80)
    result = fit(person, person.marker_positions(q), [m.name for m in person.markers])
    assert np.abs(np.diff(result.q[:60, 0])).max() < 0.3
    assert any("trunk is near gimbal lock" in warning for warning in result.warnings)
    flat = fit(person, person.marker_positions(q[:40]), [m.name for m in person.markers])
    assert not any("gimbal" in warning for warning in flat.warnings)


def test_bad_input_is_told(walker, tmp_path, human_motion):
    _, markers = walk_of(walker, frames=3)
    labels = [m.name for m in walker.markers]
    with pytest.raises(ClipError, match=r"9\d\d times too large"):
        fit(walker, 1000 * markers, labels)
    with pytest.raises(ClipError, match="times too small"):
        fit(walker, 0.001 * markers, labels)
    with pytest.raises(ClipError, match="rename them"):
        fit(walker, markers[:, :5], list("abcde"))
    with pytest.raises(ClipError, match="no frame shows three"):
        fit(walker, np.full_like(markers, np.nan), labels)
    with pytest.raises(SizeError, match="labels, 3"):
        fit(walker, markers, labels[:-1])
    with pytest.raises(UnknownNameError, match="knee_angle_r"):
        fit(walker, markers, labels, FitTasks(coordinates={"knee_angel_r": None}))
    with pytest.raises(ConfigError, match="from 0 to 1e"):
        fit(walker, markers, labels, FitTasks(markers={"R.Knee": -1.0}))
    # Subject and case of a label do not matter.
    assert fit(walker, markers, [f"Bob:{name.upper()}" for name in labels], None, PLAIN).labels == tuple(labels)
    setup = human_motion(CASES["walk"][2]).read_text()
    task = "<IKCoordinateTask name='{}'><apply>true</apply><weight>5</weight><value_type>{}</value_type>"
    task += "</IKCoordinateTask>"
    for name, kind, told in (
        ("subtalar_angle_r", "default_value", "is locked, but a task uses it"),
        ("knee_angle", "default_value", "did you mean|knee_angle_r"),
        ("knee_angle_r", "from_file", "takes its values from a file"),
        ("knee_angle_r", "by_chance", "unknown to OpenSim"),
    ):
        path = tmp_path / "setup.xml"
        path.write_text(setup.replace("<IKTaskSet>", "<IKTaskSet>" + task.format(name, kind), 1))
        with pytest.raises((ConfigError, UnknownNameError), match=told) as refused:
            read_ik_setup(path, walker)
        assert str(refused.value).startswith(str(path))


def test_the_worst_marker_of_a_frame_is_named_and_none_where_none_was_seen():
    nothing = (None,) * 3
    residuals = np.array([[0.1, 0.3, np.nan], [np.nan] * 3, [np.nan, np.nan, 0.4]])
    fit = Fit(*nothing, ("a", "b", "c"), residuals, *((None,) * 5))
    assert fit.worst_marker.tolist() == [1, -1, 2]
    np.testing.assert_allclose(fit.worst, [0.3, np.nan, 0.4])
    np.testing.assert_allclose(fit.rms, [np.sqrt(0.05), np.nan, 0.4])

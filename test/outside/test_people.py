"""Forces and models of people, as other people's programs wrote them."""

import numpy as np
import pytest

from humanoid_control.human.forces.force_plates import read_force_plates
from humanoid_control.human.forces.loads import read_loads


def fault(name, right):
    return pytest.mark.fault(name, right)


def at(wrench, begin, end):
    """Medians from one time to another: force [N] (3), centre of pressure [m] (3), size of the free moment [N m]."""
    k = (wrench.times >= begin - 0.004) & (wrench.times <= end + 0.004)
    rows = np.asarray(wrench.force)[k], wrench.center_of_pressure()[k], np.atleast_1d(wrench.free_moment())[k]
    force, point, moment = (np.median(x, axis=0) for x in rows)
    return np.array([*force, *point, np.linalg.norm(moment)])


def shown(wrench):
    return "force {:.0f} {:.0f} {:.0f} N at {:.3f} {:.3f} {:.3f} m, {:.1f} N m;".format(*wrench + 0.0)


TABLE = [70.0, 700.0, 0.0, 0.2, 0.0, 0.1, 12.0]
PLATE = [90.0, -60.0, 700.0, 0.35, 0.12, 0.0, 5.0]


@fault("B04", "70, 700, 0 N at 0.2, 0, 0.1 m, free moment 12 N m (a, b); two loads, or a word about the second (d)")
def test_columns_of_ground_reactions_by_other_names(folder, result, capsys):
    a, b = (at(read_loads(folder / f"{n}.mot")[0], 1.0, 1.0) for n in ("a_ground_torque", "b_ground_moment"))
    capsys.readouterr()
    d = read_loads(folder / "d_two_plates_one_without_points.mot")
    said = capsys.readouterr().err + " ".join(w for load in d for w in load.warnings)
    result(shown(a), shown(b), f"d: {len(d)} loads, {said.strip()[:100]}")
    assert a == pytest.approx(TABLE, abs=1e-3) and b == pytest.approx(TABLE, abs=1e-3)
    assert len(d) == 2 or "1_ground_force_v" in said


@fault("B15", "90, -60, 700 N at 0.35, 0.12, 0 m, free moment 5 N m in all")
def test_plates_of_c3d_files(folder, result):
    names = ("type2_corners_not_quite_a_rectangle", "type2_sensor_40_mm_below", "type2_used_is_a_byte")
    found = [at(read_force_plates(folder / f"{n}.c3d")[0], 0.6, 0.8) for n in names]
    result(*map(shown, found))
    assert all(w == pytest.approx(PLATE, abs=0.03) for w in found)


@fault("B16", "90, -60, 700 N at 0.35, 0.12 m, loaded from 0.40 to 1.00 s")
def test_the_file_says_when_a_plate_was_unloaded(folder, result):
    wrenches = [read_force_plates(folder / f"{n}.c3d")[0].zeroed() for n in ("zero_range_drift_120N", "no_drift")]
    found = [at(w, 0.6, 0.8) for w in wrenches]
    spans = [[(w.times[i], w.times[min(j, len(w.times) - 1)]) for i, j in w.loaded()] for w in wrenches]
    result(*map(shown, found), "loaded", *[f"{i:.2f} to {j:.2f} s" for s in spans for i, j in s])
    assert all(w[:3] == pytest.approx(PLATE[:3], abs=1.0) for w in found)
    assert all(w[3:5] == pytest.approx(PLATE[3:5], abs=2e-3) for w in found)
    assert all(len(s) == 1 and s[0] == pytest.approx((0.4, 1.0), abs=0.02) for s in spans)


def angles(path):
    """Labels and rows of a table of angles."""
    lines = path.read_text().splitlines()
    head = next(k for k, line in enumerate(lines) if line.startswith("time"))
    return lines[head].split(), np.array([[float(x) for x in line.split()] for line in lines[head + 1 :] if line])


@fault("B34", "the same angles as without the marker, to 1e-6 deg; l_wrist is not in the list of errors")
def test_markers_outside_of_the_task_set_are_left_out(folder, result, humanoid, tmp_path):
    model = ("--model", folder / "model.osim", "--mass", 75)
    setup = ("--setup", folder / "wrist_not_named.xml")
    tables = []
    for name in ("wrist_marker_slipped", "without_wrist"):
        code, out, errors = humanoid("analyse", folder / f"{name}.trc", *model, *setup, "-o", name)
        assert code == 0, errors
        tables.append((out, *angles(tmp_path / name / "angles.mot")))
    (out, labels, rows), (_, other_labels, other_rows) = tables
    apart = np.abs(rows - other_rows).max() if rows.shape == other_rows.shape else np.inf
    result(f"angles within {apart:.1e} deg; l_wrist {'listed' if 'l_wrist' in out else 'not listed'}")
    assert labels == other_labels and apart < 1e-6 and "l_wrist" not in out


@fault("B41", "elbow_flex_l is 68.75 deg in every frame, or refused by its name")
def test_a_prescribed_coordinate(folder, result, humanoid, tmp_path):
    given = ("--model", folder / "prescribed.osim", "--setup", folder / "all.xml", "--mass", 75, "-o", "out")
    code, _, errors = humanoid("analyse", folder / "walk.trc", *given)
    assert code == 0, errors
    labels, rows = angles(tmp_path / "out" / "angles.mot")
    elbow = rows[:, labels.index("elbow_flex_l")]
    result(f"{elbow.min():.3f} to {elbow.max():.3f} deg in {len(elbow)} frames")
    assert elbow == pytest.approx(np.full(len(elbow), np.degrees(1.2)), abs=0.01)


@fault("B47", "70, 700, 0 N at 0.2, 0, 0.1 m, free moment 12 N m in all; b and c in mm, by the command line too")
def test_tables_of_forces_in_other_units_and_with_odd_headers(folder, result, humanoid):
    found = {}
    for path in sorted(folder.glob("*.mot")):
        loads = read_loads(path, **({"unit": "mm"} if path.name[0] in "bc" else {}))
        found[path.name[0]] = at(loads[0], 1.0, 1.0)
    right = [k for k, w in found.items() if w == pytest.approx(TABLE, abs=0.01)]
    help_ = humanoid("analyse", "--help")[1]
    option = "is" if "--forces-unit" in help_ else "is not"
    result(f"right: {', '.join(right)} of {', '.join(found)}; --forces-unit {option} an option")
    assert len(found) == 7 and right == list(found) and "--forces-unit" in help_

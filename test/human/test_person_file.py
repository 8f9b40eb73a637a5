"""Our own person: published lengths, masses and ranges; both sides; the spine's shares; files that are wrong."""

import copy

import numpy as np
import pytest
import yaml

from humanoid_control.errors import HumanoidError
from humanoid_control.human.marker_fit import other_side
from humanoid_control.human.models import own_person, read_person_file
from humanoid_control.human.models.person_file import FOLDER, find_person_file
from humanoid_control.human.models.subject import centre_of_mass

# de Leva 1996, table 4: share of the mass [%] of men and of women.
MASSES = {"head": (6.94, 6.68), "T4": (15.96, 15.45), "L2": (16.33, 14.65), "pelvis": (11.17, 12.47),
          "humerus_r": (2.71, 2.55), "radius_r": (1.62, 1.38), "hand_r": (0.61, 0.56), "femur_r": (14.16, 14.78),
          "tibia_r": (4.33, 4.81)}  # fmt: skip
LENGTHS = {("femur_r", "tibia_r"): 0.4222, ("tibia_r", "talus_r"): 0.434, ("humerus_r", "ulna_r"): 0.2817,
           ("radius_r", "hand_r"): 0.2689}  # fmt: skip  # [m] of 1.741 m


@pytest.fixture(scope="module")
def person():
    return own_person(1.741, 73.0).person


@pytest.fixture(scope="module")
def own_file():
    """Our own file as mappings and lists."""
    return yaml.safe_load((FOLDER / "person.yaml").read_text())


def zero(person):
    """Posture with all angles 0."""
    return np.where(person.rotational, 0.0, person.rest)


@pytest.mark.parametrize(("sex", "column"), [("men", 0), ("women", 1)])
def test_masses_are_those_of_de_leva(sex, column):
    person = own_person(1.741, 73.0, sex).person
    mass = {b.name: b.mass for b in person.bodies}
    for name, shares in MASSES.items():
        assert mass[name] == pytest.approx(73.0 * shares[column] / 100), name
    foot = {0: 1.37, 1: 1.29}[column]
    assert mass["calcn_l"] + mass["toes_l"] == pytest.approx(73.0 * foot / 100)
    assert person.mass == pytest.approx(73.0, rel=2e-4)  # the table's own sum is 100.00 and 99.99
    thigh = next(b for b in person.bodies if b.name == "femur_r")
    radii = {0: (0.329, 0.149, 0.329), 1: (0.369, 0.162, 0.364)}[column]
    np.testing.assert_allclose(np.sqrt(np.diag(thigh.inertia) / thigh.mass) / 0.4222, radii, rtol=1e-3)
    assert -thigh.com[1] / 0.4222 == pytest.approx({0: 0.4095, 1: 0.3612}[column], rel=1e-3)


def test_lengths_are_published_ones_and_grow_with_the_stature(person):
    _, p = person.body_poses(zero(person))
    at = dict(zip(person.body_names, p[0], strict=True))
    for (a, b), length in LENGTHS.items():
        assert np.linalg.norm(at[b] - at[a]) == pytest.approx(length, rel=1e-3), (a, b)
    assert at["talus_r"][1] / 1.741 == pytest.approx(0.039) and at["femur_r"][1] / 1.741 == pytest.approx(
        0.530, abs=2e-3
    )
    # Winter 2009: the centre of mass of a standing person is at 0.56 of the stature or so.
    assert centre_of_mass(person, zero(person)[None])[0, 1] / 1.741 == pytest.approx(0.56, abs=0.01)
    # The lumbar curve: levels lie 6, 3, -2, -6 and -9 mm ahead of the one below, of a person of that stature.
    assert at["T12"][0] - at["L5"][0] == pytest.approx(-0.008) and at["L3"][0] - at["L5"][0] == pytest.approx(0.009)
    tall = own_person(2.0, 73.0).person
    _, big = tall.body_poses(zero(tall))
    np.testing.assert_allclose(big, p * 2.0 / 1.741, atol=1e-12)


def test_it_has_the_coordinates_that_were_asked_for(person):
    assert person.n == 47
    for group in ("lumbar", "thorax", "neck"):
        assert sum(n.startswith(f"{group}_") for n in person.names) == 3
    assert sum(n.endswith("_r") for n in person.names) == 16 == sum(n.endswith("_l") for n in person.names)


def test_equal_values_on_both_sides_are_a_symmetric_posture(person):
    """The mirror image of a posture is the posture with both sides exchanged."""
    rng, mirror = np.random.default_rng(1), np.diag([1.0, 1.0, -1.0])
    q = rng.uniform(-0.7, 0.7, person.n)
    other = q.copy()
    for k, name in enumerate(person.names):
        if name.endswith(("_r", "_l")):
            other[person.index(other_side(name))] = q[k]
        elif name.endswith(("_bending", "_rotation", "_list", "_tz")):
            other[k] = -q[k]
    (R, Rm), (p, pm) = person.body_poses(np.stack([q, other]))
    for k, name in enumerate(person.body_names):
        j = person.body_index(other_side(name) if name.endswith(("_r", "_l")) else name)
        np.testing.assert_allclose(pm[j], mirror @ p[k], atol=1e-12, err_msg=name)
        np.testing.assert_allclose(Rm[j], mirror @ R[k] @ mirror, atol=1e-12, err_msg=name)
    com = {b.name: (b.com, b.inertia, b.mass) for b in person.bodies}
    for name, (c, i, m) in com.items():
        twin = com[other_side(name) if name.endswith(("_r", "_l")) else name]
        np.testing.assert_allclose(mirror @ c, twin[0], atol=1e-12)
        np.testing.assert_allclose(mirror @ i @ mirror, twin[1], atol=1e-12)
        assert m == twin[2]


def test_vertebrae_share_a_coordinate_by_their_published_ranges(person):
    """Lumbar extension by 1 turns L5 by 17/74 of it against the pelvis, and T12 not at all (White and Panjabi 1990)."""
    q = zero(person)
    q[person.index("lumbar_extension")] = 0.5
    R, _ = person.body_poses(q)
    angle = {n: np.arctan2(R[0, k, 1, 0], R[0, k, 0, 0]) for k, n in enumerate(person.body_names)}
    ranges = {"L5": 17, "L4": 16, "L3": 15, "L2": 14, "L1": 12}
    total = 0.0
    for name, value in ranges.items():
        total += 0.5 * value / sum(ranges.values())
        assert angle[name] == pytest.approx(total, abs=1e-12), name
    assert angle["T12"] == pytest.approx(0.5) == angle["head"] and angle["pelvis"] == 0.0
    q[:] = zero(person)
    q[person.index("thorax_rotation")] = 0.5
    R, _ = person.body_poses(q)
    turned = np.arctan2(R[0, person.body_index("T12"), 0, 2], R[0, person.body_index("T12"), 2, 2])
    assert turned == pytest.approx(0.5 * 2 / 71, abs=1e-12)
    q[:] = zero(person)
    q[person.index("neck_rotation")] = 0.7
    R, _ = person.body_poses(q)
    assert np.arctan2(R[0, person.body_index("head"), 0, 2], R[0, person.body_index("head"), 2, 2]) == pytest.approx(
        0.7
    )


def test_the_knee_slides_as_yamaguchi_and_zajac_say():
    """A person of their 1.80 m: the shank's way between published points of the splines."""
    person = own_person(1.8, 75.0).person
    flexed = np.array([0.174533, 0.349066, 0.698132, 1.0472, 1.39626, 2.0944])
    q = np.tile(zero(person), (len(flexed), 1))
    q[:, person.index("knee_angle_r")] = flexed
    R, p = person.body_poses(q)
    femur, tibia = person.body_index("femur_r"), person.body_index("tibia_r")
    way = np.einsum("tji,tj->ti", R[:, femur], p[:, tibia] - p[:, femur])
    published = np.array([-0.0031, -0.001, 0.00212, 0.0041, 0.00411, -0.0032])
    np.testing.assert_allclose(np.diff(way[:, 0]), np.diff(published), atol=1e-9)
    down = np.array([-0.3966, -0.3976, np.nan, np.nan, np.nan, -0.4226])
    np.testing.assert_allclose((way[:, 1] - way[0, 1])[[1, 5]], (down - down[0])[[1, 5]], atol=1e-9)
    shin = R[:, femur].swapaxes(1, 2) @ R[:, tibia]
    np.testing.assert_allclose(-np.arctan2(shin[:, 1, 0], shin[:, 0, 0]), flexed, atol=1e-12)


def test_a_person_that_cannot_be_is_refused():
    for bad, told in (({"stature": 17.0}, "0.4 to 2.6 m"), ({"mass": -3.0}, "3 to 400 kg"), ({"sex": "man"}, "men")):
        with pytest.raises(HumanoidError, match=told):
            own_person(**bad)
    with pytest.raises(HumanoidError, match="did you mean person"):
        own_person(model="persn")


def changed(d, path, value):
    """The content with another value at a path; None takes it away."""
    at = d
    for key in path[:-1]:
        at = at[key]
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        (("schema",), "humanoid_robot/1", "the first key must be 'schema: humanoid_person/1'"),
        (("bodies", 0, "siez"), "pelvis", "did you mean size"),
        (("bodies", 0, "inertia"), "lower_trnk", "lower_trunk"),
        (("bodies", 0, "from"), [1, 2], "must be 3 numbers"),
        (("bodies", 0, "portion"), 0.0, "above 0 and at most 1"),
        (("bodies", 1, "name"), "pelvis", "occurs more than once"),
        (("bodies", 1, "name"), "femur_l", "is a left one"),
        (("inertia", "men", "head"), [1, 2, 3], "must be 5 numbers"),
        (("inertia", "women", "tail"), [1, 2, 3, 4, 5], "given for one sex only"),
        (("joints", 1, "parent"), "T0", "unknown body 'T0'"),
        (("joints", 1, "turns", 0, 1), "w", "an axis is x, y, z"),
        (("joints", 1, "turns", 0, 1), [0, 0, 0], "no length"),
        (("joints", 1, "turns", 0), "z", r"an axis is \[coordinate, axis\]"),
        (("joints", 1, "at"), [0, float("nan"), 0], "must be 3 numbers"),
        (("spine", 0, "levels", 0), ["L5", 20], r"a level is \[body, height"),
        (("spine", 0, "levels", 0, 1), -3, "height must be positive"),
        (("spine", 0, "levels", 0, 3), [1, 2], "must be 3 numbers"),
        (("spine", 0, "at"), None, "give 'at', where it begins"),
        (("spine", 0, "lenght"), 0.2, "did you mean length"),
        (("spine", 0, "length"), None, "lacks the key 'length'"),
        (("spine", 0, "levels"), None, "lacks the key 'levels'"),
        (("spine", 0, "turns"), None, "lacks the key 'turns'"),
        (("spine", 0, "parent"), None, "lacks the key 'parent'"),
        (("spine", 0, "length"), 0.0, "needs a length above 0"),
        (("coordinates", 0, "range"), [40, 30], "range is 40 to 30"),
        (("coordinates", 0, "rest"), 300, "rests at 300"),
        (("coordinates", 0, "spread"), -1, "above 0"),
        (("coordinates", 0, "name"), "lumbar_extensoin", "lumbar_extens"),
        (("coordinates", 0), None, "lacks 'lumbar_extension'"),
        (("landmarks", "asis_r", "body"), "pelvs", "did you mean pelvis"),
        (("landmarks", "asis_r", "bone"), "yes", "must be true or false"),
    ],
)  # fmt: skip
def test_a_file_that_is_wrong_is_told_by_place_and_word(own_file, path, value, told, tmp_path):
    d = copy.deepcopy(own_file)
    changed(d, path, value)
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.dump(d, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=False))
    with pytest.raises(HumanoidError, match=told) as error:
        read_person_file(file)
    assert "mine.yaml" in str(error.value) and "\n" not in str(error.value)


def test_a_file_of_ones_own_is_read(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text((FOLDER / "person.yaml").read_text().replace("name: person", "name: mine", 1))
    mine = find_person_file(file).build(1.7, 60.0, "women")
    assert mine.name == "mine" and mine.n == own_person().person.n
    with pytest.raises(HumanoidError, match=r"nowhere\.yaml"):
        find_person_file(tmp_path / "nowhere.yaml")

"""Good files of a person: a model, a template of markers, force plates and loads; and what reads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from humanoid_control.human.forces.force_plates import read_force_plates
from humanoid_control.human.forces.loads import read_loads
from humanoid_control.human.forces.wrenches import MeasuredWrench
from humanoid_control.human.models.marker_template import read_template
from humanoid_control.human.models.person_file import read_person_file
from test.c3d_writer import c3d_file
from test.good_files.kinds import FileKind, finite, write

PERSON = """schema: humanoid_person/1
name: two
sources: {lengths: nobody}
inertia:
  men: {thigh: [60, 41, 33, 33, 15], shank: [20, 45, 26, 25, 10]}
  women: {thigh: [60, 36, 37, 36, 16], shank: [20, 44, 27, 27, 9]}
bodies:
- {name: pelvis, size: leg, inertia: thigh, from: [0, 1, 0], to: [0, 0.6, 0]}
- {name: L1, size: leg}
- {name: tibia_r, size: leg, inertia: shank, from: [0, 0.5, 0.1], to: [0, 0.1, 0.1], portion: 0.5, along: y}
joints:
- body: pelvis
  parent: ground
  at: [0, 0.8, 0]
  turns: [[tilt, z], [list, x], [rotation, y]]
  moves: [[tx, x], [ty, y], [tz, z]]
- body: tibia_r
  parent: pelvis
  at: [0, 0.5, 0.1]
  turns: [[knee_r, -z], [turn_r, [0.1, 0.9, 0.1]]]
  slides: [{coordinate: knee_r, axis: x, stature: 1.8, rad: [-1, 0, 1], m: [0, 0.01, 0.03]}]
spine:
- {parent: pelvis, at: [0, 0.9, 0], length: 0.1, turns: [[bend, z]], levels: [[L1, 20, 1, [5]]]}
coordinates:
- {name: knee_r, range: [-10, 120], rest: 10, spread: 20}
- {name: turn_r, range: [-30, 30]}
- {name: bend, range: [-30, 30]}
landmarks:
  hip_r: {body: pelvis, at: [0, 0.6, 0.1], bone: true}
  ankle_r: {body: tibia_r, at: [0, 0.1, 0.1]}
"""
MARKERS = """schema: humanoid_markers/1
about: some markers
markers:
- [hip, RHIP, LHIP]
- [sacrum, SACR]
- {body: tibia, labels: [RTIB, LTIB]}
computed: [CentreOfMass]
computed_sides: [HJC]
"""


def use_person(path: Path) -> None:
    """A model of a person: built for both sexes, and placed."""
    file = read_person_file(path)
    for sex in ("men", "women"):
        person = file.build(1.7, 70.0, sex)
        finite("poses", *person.body_poses(person.rest))


def _plates(folder: Path) -> None:
    """A C3D file of one force plate."""
    corners = np.array([(500, 400, 0), (0, 400, 0), (0, 0, 0), (500, 0, 0)], dtype=float)
    parameters = {
        "ANALOG:UNITS": ["N"] * 3 + ["Nmm"] * 3,
        "FORCE_PLATFORM:USED": np.array([1]),
        "FORCE_PLATFORM:TYPE": np.array([2]),
        "FORCE_PLATFORM:CORNERS": corners.T[:, :, None],
        "FORCE_PLATFORM:ORIGIN": np.array([[0.0], [0.0], [-40.0]]),
        "FORCE_PLATFORM:CHANNEL": np.arange(1, 7)[:, None],
    }
    samples = np.outer(np.sin(np.arange(60) / 10) > 0, [10.0, 5, 700, 2000, 3000, 100])
    (folder / "a.c3d").write_bytes(c3d_file(samples, parameters))


def _loads(folder: Path) -> None:
    """Forces of OpenSim: a table and the file that says what is what."""
    names = [f"{what}{axis}" for what in ("f_v", "f_p", "t_") for axis in "xyz"]
    rows = ["\t".join(map(str, (k / 100, 10, 700 + k, 5, 0.1, 0, 0.2, 0, k, 0))) for k in range(30)]
    table = ["forces", "nRows=30", "nColumns=10", "endheader", "\t".join(["time", *names]), *rows]
    tags = {
        "applied_to_body": "calcn_r",
        "force_identifier": "f_v",
        "point_identifier": "f_p",
        "torque_identifier": "t",
    }
    force = "".join(f"<{tag}>{value}</{tag}>\n" for tag, value in tags.items())
    write(
        folder,
        a__mot="\n".join(table),
        a__xml=f'<ExternalLoads name="x"><objects><ExternalForce name="r">\n{force}</ExternalForce></objects>\n'
        "<datafile>a.mot</datafile></ExternalLoads>",
    )


def use_wrenches(read: Callable[[Path], tuple[MeasuredWrench, ...]]) -> Callable[[Path], None]:
    def use(path: Path) -> None:
        for wrench in read(path):
            wrench.zeroed().cut().center_of_pressure()

    return use


PERSON_KINDS: dict[str, FileKind] = {
    "person": FileKind(lambda f: write(f, a__yaml=PERSON), ("a.yaml",), "a.yaml", use_person),
    "markers": FileKind(lambda f: write(f, a__yaml=MARKERS), ("a.yaml",), "a.yaml", read_template),
    "wrenches c3d": FileKind(_plates, ("a.c3d",), "a.c3d", use_wrenches(read_force_plates)),
    "wrenches xml": FileKind(_loads, ("a.xml", "a.mot"), "a.xml", use_wrenches(read_loads)),
}

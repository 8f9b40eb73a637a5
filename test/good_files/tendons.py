"""Good files of tendons and muscles of others, and of mappings from joints to them; and what reads them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.tendons import load_mapping, read_cardsflow, read_mjcf, save_mapping
from humanoid_control.tendons.mappings.neural import fit_neural
from humanoid_control.tendons.mappings.polynomial import fit_polynomial_on_grid
from humanoid_control.tendons.mappings.postures import random_postures
from humanoid_control.tendons.mappings.table import build_table
from test.good_files.kinds import FileKind, finite, write
from test.good_files.robots import small_robot
from test.reference.straight_tendons import ARM_LENGTHS, LIMITS

MJCF = """<mujoco model="toy"><compiler angle="radian"/>
<default><default class="arm"><joint axis="0 1 0" range="-1 2"/></default></default>
<worldbody><site name="a" pos="0 0 .1"/>
  <body name="upper" childclass="arm"><joint name="elbow"/><geom name="g" type="cylinder" size=".02 .1"/>
    <site name="b" pos=".05 0 0"/><site name="s" pos="0 .1 0"/>
    <body name="lower" pos="0.2 0 0"><joint name="wrist" type="slide"/><site name="c" pos=".1 0 0"/></body></body>
</worldbody>
<equality><joint joint1="wrist" joint2="elbow" polycoef="0 0.1 0 0 0"/></equality>
<tendon><spatial name="t"><site site="a"/><geom geom="g" sidesite="s"/><site site="c"/></spatial>
  <spatial><site site="a"/><site site="b"/><pulley divisor="2"/><site site="b"/><site site="c"/></spatial></tendon>
</mujoco>"""
CARDSFLOW = """<?xml version="1.0" ?>
<cardsflow>
  <myoMuscle name="motor0" pid_control="1"><link name="pelvis"><viaPoint type="FIXPOINT">0.05 0.05 0</viaPoint></link>
    <link name="l_thigh"><viaPoint type="FIXPOINT">0.03 0 -0.3</viaPoint></link>
    <link name="l_shank"><viaPoint type="FIXPOINT">0.03 0 -0.1</viaPoint></link></myoMuscle>
  <myoMuscle name="motor1"><link name="pelvis"><viaPoint>-0.05 0.05 0</viaPoint></link>
    <link name="l_thigh"><viaPoint>-0.03 0 -0.3</viaPoint></link></myoMuscle>
</cardsflow>
"""


def _mappings(folder: Path) -> None:
    """A fitted mapping of each kind, as `save_mapping` writes them."""
    mappings = {
        "polynomial": fit_polynomial_on_grid(ARM_LENGTHS, (3, 3, 3, 3), 2),
        "neural": fit_neural(ARM_LENGTHS, random_postures(LIMITS, 100), 4, 10),
        "table": build_table(ARM_LENGTHS, random_postures(LIMITS, 50)),
    }
    for name, mapping in mappings.items():
        save_mapping(folder / f"{name}.npz", mapping)


def _cardsflow(folder: Path) -> None:
    small_robot(folder)
    shutil.move(folder / "r.urdf", folder / "model.urdf")
    write(folder, cardsflow__xml=CARDSFLOW)


def use_mapping(path: Path) -> None:
    mapping = load_mapping(path)
    finite("length", *mapping.evaluate(mapping.limits.mean(axis=1)[None]))


def use_model(read: Callable[[Path], Any]) -> Callable[[Path], None]:
    def use(path: Path) -> None:
        geometry = read(path).geometry()
        finite("length", *geometry.raw(np.zeros((1, len(geometry.joint_names)))))

    return use


TENDON_KINDS: dict[str, FileKind] = {
    "polynomial": FileKind(_mappings, ("polynomial.npz",), "polynomial.npz", use_mapping),
    "neural": FileKind(_mappings, ("neural.npz",), "neural.npz", use_mapping),
    "table": FileKind(_mappings, ("table.npz",), "table.npz", use_mapping),
    "mjcf": FileKind(lambda f: write(f, a__xml=MJCF), ("a.xml",), "a.xml", use_model(read_mjcf)),
    "cardsflow": FileKind(_cardsflow, ("cardsflow.xml", "model.urdf"), "cardsflow.xml", use_model(read_cardsflow)),
}

"""A drive of the file as what the simulation reckons with: motor, friction, elastic gear."""

from __future__ import annotations

from dataclasses import asdict

from humanoid_control.errors import RobotError
from humanoid_control.robots.drives import Drive
from humanoid_control.simulation.drives.gear import ElasticGear, GearFriction
from humanoid_control.simulation.drives.motor import MotorSettings


def motor_settings(drive: Drive) -> MotorSettings:
    """The motor of a drive, with the torque constant as its back EMF.

    Raises:
        RobotError: the drive has no motor.
    """
    m = drive.motor
    if m is None:
        raise RobotError(f"drive '{drive.name}' has no motor in the file of drives")
    return MotorSettings(
        resistance=m.resistance,
        inductance=m.inductance,
        back_emf=m.torque_constant,
        current_limit=m.current_limit,
        voltage_limit=m.voltage_limit,
    )


def gear_friction(drive: Drive) -> GearFriction:
    """The friction of a drive, at the motor's shaft."""
    return GearFriction(**asdict(drive.friction))


def elastic_gear(drive: Drive) -> ElasticGear | None:
    """The elastic gear of a drive; None where it is rigid."""
    e = drive.elastic
    return None if e is None else ElasticGear(drive.ratio, e.stiffness, e.damping)

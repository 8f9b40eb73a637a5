"""Winch commands and measured states, in the order of the robot's tendons.

Signs: moment arms are G = dl/dq; tensions T give joint torques -G^T T. Winding at w changes the free wire by -w.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

OFF, HYBRID, TENSION, LENGTH, HOLD, PAY_OUT = range(6)
KIND_NAMES = ("off", "hybrid", "tension", "length", "hold", "pay_out")


class WinchCommand(NamedTuple):
    """Commands of M winches.

    Attributes:
        kind: (M,) int64. OFF: no current. HYBRID: wind at `speed`, with an admittance to `tension`. TENSION: hold
            `tension`, feedforward `speed`. LENGTH: servo to `length`, feedforward `tension`. HOLD: keep the wire.
            PAY_OUT: lower to `tension` at limited speed.
        speed: (M,) winding speed w_c [m/s], positive taking in.
        tension: (M,) f [N].
        length: (M,) unstretched free wire x_ref [m].
    """

    kind: np.ndarray
    speed: np.ndarray
    tension: np.ndarray
    length: np.ndarray


class WinchStates(NamedTuple):
    """Measured states of M winches.

    Attributes:
        wire: (M,) unstretched free wire x [m], by a drum encoder; the path is longer by T/k.
        speed: (M,) winding speed w = -dx/dt [m/s].
        tension: (M,) sensor tension T [N].
    """

    wire: np.ndarray
    speed: np.ndarray
    tension: np.ndarray


def no_command(tendons: int) -> WinchCommand:
    """Return new commands of M winches, all off."""
    return WinchCommand(np.zeros(tendons, dtype=np.int64), *np.zeros((3, tendons)))


def no_states(tendons: int) -> WinchStates:
    """Return new states of M winches, all zero."""
    return WinchStates(*np.zeros((3, tendons)))


# -------- As messages

NO_FIELD = np.zeros(0)


class CommandFields(NamedTuple):
    """Message fields of one kind of command to some tendons; a field is complete or empty.

    Attributes:
        rows: tendon indices.
        position: wire lengths [m].
        velocity: wire rates, -w_c [m/s].
        effort: tensions [N].
    """

    rows: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray


def fields_of(command: WinchCommand) -> list[CommandFields]:
    """Return the messages of winch commands, one per kind.

    Velocity and effort encode HYBRID, effort alone TENSION, position and effort LENGTH. OFF becomes zero tension,
    PAY_OUT a HYBRID without winding. HOLD sends nothing: drives without messages hold their wires.
    """
    kind, out = command.kind, []
    hybrid = np.flatnonzero((kind == HYBRID) | (kind == PAY_OUT))
    if len(hybrid):
        rate = np.where(kind[hybrid] == HYBRID, -command.speed[hybrid], 0.0)
        out.append(CommandFields(hybrid, NO_FIELD, rate, command.tension[hybrid]))
    pulled = np.flatnonzero((kind == TENSION) | (kind == OFF))
    if len(pulled):
        effort = np.where(kind[pulled] == OFF, 0.0, command.tension[pulled])
        out.append(CommandFields(pulled, NO_FIELD, NO_FIELD, effort))
    servoed = np.flatnonzero(kind == LENGTH)
    if len(servoed):
        out.append(CommandFields(servoed, command.length[servoed], NO_FIELD, command.tension[servoed]))
    return out

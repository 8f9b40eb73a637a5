"""Commands of winches and what their drives measure: arrays in the order of the robot's tendons.

Signs: the moment arms are G = dl/dq, tendons of tension T give the joint torques -G^T T, and a winch that winds at the
speed w takes in wire, so that the wire out of it changes by -w. A tendon of a stiff wire that follows its path winds at
-G v.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

OFF, HYBRID, TENSION, LENGTH, HOLD, PAY_OUT = range(6)
KIND_NAMES = ("off", "hybrid", "tension", "length", "hold", "pay_out")


class WinchCommand(NamedTuple):
    """Commands of M winches.

    Attributes:
        kind: (M,) int64. OFF: no current. HYBRID: winds at `speed` and is led to `tension` by an admittance. TENSION:
            holds `tension` about the forward `speed`. LENGTH: servoes the wire to `length` with `tension` forward.
            HOLD: servoes the wire to where it is when this kind is first commanded. PAY_OUT: lets `tension` fall to
            that commanded, within the speed limit.
        speed: (M,) winding speed w_c [m/s], positive taking in.
        tension: (M,) f [N].
        length: (M,) wire out of the winch, unstretched, x_ref [m].
    """

    kind: np.ndarray
    speed: np.ndarray
    tension: np.ndarray
    length: np.ndarray


class WinchStates(NamedTuple):
    """What the drives of M winches measure.

    Attributes:
        wire: (M,) wire out of the winch, unstretched, x [m]; an encoder on the drum sees it. The path is longer by the
            stretch T/k.
        speed: (M,) winding speed w = -dx/dt [m/s].
        tension: (M,) T [N] at the sensor.
    """

    wire: np.ndarray
    speed: np.ndarray
    tension: np.ndarray


def no_command(tendons: int) -> WinchCommand:
    """Return commands of M winches that are off, to be filled.

    Args:
        tendons: M.
    """
    return WinchCommand(np.zeros(tendons, dtype=np.int64), *np.zeros((3, tendons)))


def no_states(tendons: int) -> WinchStates:
    """Return states of M winches at rest with no wire and no tension, to be filled.

    Args:
        tendons: M.
    """
    return WinchStates(*np.zeros((3, tendons)))


# -------- As messages

NO_FIELD = np.zeros(0)


class CommandFields(NamedTuple):
    """Commands of one kind to some tendons, as the fields of a message: all of them filled, or empty.

    Attributes:
        rows: which tendons. position: lengths of wire [m]. velocity: their rates, -w_c [m/s]. effort: tensions [N].
    """

    rows: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray


def fields_of(command: WinchCommand) -> list[CommandFields]:
    """Return the messages that give commands to winches, one for each kind of command in use.

    Velocity and effort tell HYBRID, effort alone TENSION, position and effort LENGTH. OFF becomes a tension of 0,
    PAY_OUT a HYBRID that winds nothing. Winches on HOLD get no message: without one a drive holds its wire.
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

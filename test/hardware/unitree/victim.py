"""A driver that is to be killed: it holds a G1 and drives one hip by torque: `python victim.py DOMAIN GUARDED TORQUE`.

It says where the hip is once it moves, and goes on until it is killed.
"""

import sys
import time

from humanoid_control.hardware.guardian import GuardedBus, Guardian
from humanoid_control.hardware.transport import ActuatorCommand, ActuatorSpec, ActuatorState, BusSpec, Mode
from humanoid_control.hardware.unitree.link import UnitreeTransport
from humanoid_control.hardware.unitree.models import G1

HIP, PERIOD, LIMIT = 0, 0.004, 0.05
MOVED = 0.1  # [rad]


def main(domain, guarded, torque):
    actuators = tuple(ActuatorSpec(m.name, m.id, Mode.EFFORT if m.id == HIP else Mode.POSITION) for m in G1.motors)
    options = {"interface": "lo", "domain": int(domain), "model": "g1", "simulated": True, "damping": 10.0}
    bus = UnitreeTransport(BusSpec("body", actuators, PERIOD, options))
    state, command = ActuatorState(29), ActuatorCommand(29)
    command.mode[:] = [a.mode for a in actuators]
    bus.open()
    guardian = Guardian([GuardedBus("body", *bus.guard())], LIMIT) if guarded == "guarded" else None
    begin, start, said = time.monotonic(), None, False
    while True:
        bus.read(state, time.monotonic() + PERIOD)
        on = bus.power(True)
        if start is None and on and time.monotonic() - begin > 2.0:
            start = state.q[HIP]
            command.tau[HIP] = float(torque)
        if not on:
            command.q[:] = state.q
        bus.write(command)
        if guardian is not None:
            guardian.beat(on, [bus.damping_frame(state)])
        if start is not None and abs(state.q[HIP] - start) > MOVED and not said:
            said = True
            print(state.q[HIP], flush=True)
        time.sleep(PERIOD)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Kernels of the simulator compiled ahead."""

from __future__ import annotations

from humanoid_control.policy.gate_kernels import keep_volumes_apart, limit_torques
from humanoid_control.simulation.worlds.step import run_driven_steps, run_steps
from humanoid_control.warm_up import compile_here
from humanoid_control.warm_up.kernel_files import are_compiled

ADVICE = "compiling the simulation for this machine, only the first time: about a minute"
KERNELS = (run_steps, run_driven_steps, limit_torques, keep_volumes_apart)


def compiled() -> bool:
    """Return whether these kernels are compiled."""
    return are_compiled(KERNELS)


def compile_kernels() -> None:
    """Compile them by a step of each kind of world."""
    from humanoid_control.simulation.engine import SimulationConfig

    for base in ("fixed", "floating"):
        for drives in ("ideal", "rigid"):
            world = SimulationConfig("lola", base, drives=drives).build()
            world.command(world.joints)
            world.step(2)
            world.foot_wrenches()
    _gate()


def _gate() -> None:
    """Run a gate step in which every rule acts."""
    import numpy as np

    from humanoid_control.policy import PolicyTargets, TorqueGate
    from humanoid_control.robots import load_robot

    robot = load_robot("lola", "floating")
    zero = np.zeros(robot.n)
    gate = TorqueGate(robot, zero + 0.01)
    gate.torque(PolicyTargets(*np.zeros((5, robot.n))), robot.upper + 0.1, robot.velocity)
    gate.compile_volumes()


if __name__ == "__main__":
    compile_here(compile_kernels)

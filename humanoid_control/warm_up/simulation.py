"""The simulator's kernels compiled ahead of time, so that no world waits for the compiler."""

from __future__ import annotations

from humanoid_control.jit import are_compiled
from humanoid_control.simulation.worlds.step import run_driven_steps, run_steps
from humanoid_control.warm_up import compile_here

ADVICE = "compiling the simulation for this machine, only this once: about a minute"
KERNELS = (run_steps, run_driven_steps)


def compiled() -> bool:
    """True where the simulation's kernels are in memory or on disk."""
    return are_compiled(KERNELS)


def compile_kernels() -> None:
    """Compile what worlds need, by a step of each kind of them; quick where it is done already."""
    from humanoid_control.simulation.engine import SimulationConfig

    for base in ("fixed", "floating"):
        for drives in ("ideal", "rigid"):
            world = SimulationConfig("lola", base, drives=drives).build()
            world.command(world.joints)
            world.step(2)
            world.foot_wrenches()


if __name__ == "__main__":
    compile_here(compile_kernels)

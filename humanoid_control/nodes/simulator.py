"""Node `simulator`: a robot in a simulated world."""

from __future__ import annotations

import sys
import time
from collections import deque
from typing import Any

from std_msgs.msg import Bool
from std_srvs.srv import SetBool, Trigger

from humanoid_control.nodes.base.messages import LATCHED, PAUSED
from humanoid_control.nodes.base.runner import main_of
from humanoid_control.nodes.base.tick_node import SETTLING, Level, TickNode
from humanoid_control.nodes.simulating.inputs import SimulatorInputs
from humanoid_control.nodes.simulating.outputs import SimulatorOutputs
from humanoid_control.nodes.simulating.parameters import SimulatorParameters, engine_of
from humanoid_control.nodes.simulating.winches import SimulatorWinches, check_winch_parameters
from humanoid_control.robots import load_robot
from humanoid_control.walking.ground.standing import stand_on_ground

__all__ = ["Simulator", "SimulatorParameters", "main"]

PHASE = 0.05  # share of a period: rounding must not delay the period of a punctual tick
WINDOW = 2.0  # [s] window of the achieved factor
SHARE = 0.8  # share of a tick for simulation; messages need the rest
FREE_RATE = 50.0  # [Hz] tick rate when time runs as fast as possible
PACE_PERIOD = 1.0  # [s] period of the pace check
REPEAT_PERIOD = 0.2  # [s] period of repeated messages while paused


class Pacer:
    """Pace of simulated time.

    Small backlogs are caught up; beyond `limit`, simulated time slows down.

    Attributes:
        factor: simulated per real time; 0: as fast as possible.
        lost: dropped simulated time [s].
    """

    def __init__(self, period: float, factor: float, limit: float = 0.1) -> None:
        """Start at time 0.

        Args:
            period: simulated time of one period [s].
            factor: simulated per real time; 0: as fast as possible.
            limit: maximum backlog in real time [s].
        """
        self.period, self.factor, self.limit = period, factor, limit
        self.restart(0.0)

    def restart(self, now: float) -> None:
        """Restart at `now` [s]."""
        self._origin, self._done, self.lost = now, 0, 0.0
        self._history: deque[tuple[float, int]] = deque([(now, 0)])
        self._total = 0

    def due(self, now: float) -> int:
        """Return the number of periods to simulate at `now` [s]."""
        if not self.factor:
            return 1_000_000
        behind = (now - self._origin) * self.factor / self.period + PHASE - self._done
        most = max(1.0, self.limit * self.factor / self.period)
        if behind > most:
            given_up = int(behind - most)
            self._done += given_up
            self.lost += given_up * self.period
            behind -= given_up
        return max(0, int(behind + 1))

    def late(self, done: int, now: float) -> float:
        """Return the delay of a period [s], to be subtracted from its stamp.

        Otherwise velocities from stamps would be wrong.

        Args:
            done: periods simulated before it since the last `record`.
            now: time passed to `due` [s].
        """
        if not self.factor:
            return 0.0
        due = self._origin + (self._done + done - PHASE) * self.period / self.factor
        return max(0.0, now - due)

    def record(self, periods: int, now: float) -> None:
        self._done += periods
        self._total += periods
        self._history.append((now, self._total))
        while now - self._history[0][0] > WINDOW and len(self._history) > 2:
            self._history.popleft()

    @property
    def achieved(self) -> float:
        """Simulated per real time over the last two seconds; NaN at first."""
        (t0, n0), (t1, n1) = self._history[0], self._history[-1]
        return (n1 - n0) * self.period / (t1 - t0) if t1 - t0 > 0.25 * WINDOW else float("nan")

    @property
    def slow(self) -> bool:
        """Whether the requested factor is missed by more than 5 %."""
        return bool(self.factor) and self.achieved < 0.95 * self.factor


class Simulator(TickNode):
    """Node with one robot, its drives and the ground."""

    Parameters = SimulatorParameters
    params: SimulatorParameters
    node_name = "simulator"
    sole = True

    def configure(self) -> float:
        p = self.params
        check_winch_parameters(p)
        self.robot = load_robot(p.robot, p.base)
        self.engine = engine_of(p, self.robot)
        self.engine.step()  # loads compiled code
        self._stand()
        self.steps = max(1, round(1.0 / (p.rate * p.step)))
        period = self.steps * p.step
        self.winches = SimulatorWinches(self, self.engine)
        self.outgoing = SimulatorOutputs(self, self.engine, p)
        self.incoming = SimulatorInputs(self, self.engine)
        self.pacer, self.paused = Pacer(period, p.real_time_factor), p.paused
        self.stands_still = self.create_publisher(Bool, PAUSED, LATCHED)
        self.create_service(Trigger, "~/reset", self.on_reset)
        self.create_service(SetBool, "~/pause", self.on_pause)
        self.create_service(Trigger, "~/step", self.on_step)
        standing = p.base == "fixed" or bool(self.robot.feet)
        self.health.check(
            "feet", not standing, Level.WARN, f"{self.robot.name} has a floating base and no feet: it will fall"
        )
        return FREE_RATE if not p.real_time_factor else max(10.0, min(p.real_time_factor, 1.0) / period)

    def _stand(self) -> None:
        self.engine.reset()
        if self.params.ground:
            stand_on_ground(self.engine)

    def activate(self) -> None:
        self._begin()

    def _begin(self) -> None:
        now = time.monotonic()
        self.pacer.restart(now)
        self._pace_checked = self._repeated = now
        self.stands_still.publish(Bool(data=self.paused))
        self.outgoing.publish()

    # -- time -----------------------------------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        self.incoming.arbiter.report(now)
        if self.paused or self.engine.diverged:
            if now - self._repeated >= REPEAT_PERIOD:
                self._repeated = now
                self.outgoing.repeat()
            return
        # At least one due period runs in each tick; the others only while time is left for messages.
        end = now + SHARE / self.rate
        due, done = self.pacer.due(now), 0
        while done < due and not self.engine.diverged and (done == 0 or time.monotonic() < end):
            self.advance(done)
            done += 1
        self.pacer.record(done, time.monotonic())
        if now - self._pace_checked > PACE_PERIOD:
            self._pace_checked = now
            slow = self.pacer.slow and now - self._active_since > SETTLING
            text = f"simulation too slow: {self.pacer.achieved:.2f} times real time, requested {self.pacer.factor:g}"
            self.health.check("slow", slow, Level.WARN, text)

    def advance(self, done: int | None = None) -> None:
        """Publish one period of joint states.

        Args:
            done: periods simulated in this tick; None: the pace does not apply.
        """
        self.incoming.hold_when_silent(self.params.command_timeout)
        self.incoming.pull(self.params.tension)
        self.winches.watch()
        self.incoming.lead(self.steps * self.params.step)
        self.incoming.gained.step(self.steps)
        self.incoming.note_errors()
        failed = self.engine.diverged
        self.health.check("diverged", failed, Level.ERROR, f"the simulation {self.engine.failure}: call ~/reset")
        self.outgoing.publish(0.0 if done is None else self.pacer.late(done, time.monotonic()))

    # -- services -------------------------------------------------------------------------------------------------

    def on_reset(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Reset to time zero and the neutral posture."""
        self.winches.take_parameter()
        self._stand()
        self.incoming.restart()
        self.winches.restart()
        self.outgoing.restart()
        self.health.clear("diverged")
        self._begin()
        response.success, response.message = True, "standing in the neutral posture"
        return response

    def on_pause(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        self.paused = bool(request.data)
        self.stands_still.publish(Bool(data=self.paused))
        self.pacer.restart(time.monotonic())
        response.success, response.message = True, "paused" if self.paused else "running"
        return response

    def on_step(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Advance by `step_periods` while paused."""
        if not self.paused:
            response.success, response.message = False, "not paused: first call ~/pause with data true"
            return response
        for _k in range(self.params.step_periods):
            self.heartbeat.beat()  # many periods take long
            self.advance()
        response.success = not self.engine.diverged
        response.message = self.engine.failure or f"at {self.engine.time:.4f} s"
        return response

    def values(self) -> dict[str, Any]:
        worst, self.incoming.worst = self.incoming.worst, ("", 0.0)
        return {
            "following_error_rad": round(worst[1], 4),
            "following_error_joint": worst[0],
            "simulated_s": round(self.engine.time, 3),
            "real_time_factor": round(self.pacer.achieved, 3),
            "engine": self.params.engine,
            "paused": self.paused,
            "steps_per_period": self.steps,
            **self.incoming.gained.values(),
        }


def main() -> int:
    return main_of(Simulator)


if __name__ == "__main__":
    sys.exit(main())

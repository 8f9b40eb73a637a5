"""What diagnostics say of an estimate from tendons: consistency, faults, what cannot be seen, how sure it is."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from humanoid_control.nodes.base import TickNode
from humanoid_control.nodes.health import Level
from humanoid_control.tendons.filters.consistency import ChiSquareMean
from humanoid_control.tendons.filters.observability import Observability
from humanoid_control.tendons.tendon_estimator import TendonEstimator

LOOK = 0.25  # [s] between looks at the faults
POSTURES = 12  # of the motion, for what a relative observation sees
ROOM, SMOOTH = 1.5, 0.2
TURN = 0.5  # [s] between looks at what a group's lengths tell, group after group
SHOWN = 4  # tendons named in one line


class TendonReport:
    """Watches an estimator: adds up its innovations, names its faults, asks what its lengths tell."""

    def __init__(self, node: TickNode, estimator: TendonEstimator) -> None:
        self.health, self.estimator = node.health, estimator
        self._nis = ChiSquareMean()
        self._looked = self._turned = 0.0
        self._cost, self._group = 1e-3, 0
        self._seen: dict[str, Observability] = {}
        self.faults: dict[str, str] = {}

    def add(self) -> None:
        """The estimator made a step."""
        self._nis.add(*self.estimator.nis)

    def look(self, now: float) -> None:
        """Name the tendons that are left out; now and then, at the time now on the monotonic clock [s]."""
        if now - self._looked < LOOK:
            return
        self._looked = now
        self.faults = self.estimator.faults.report()
        named = [f"{name} {why}" for name, why in list(self.faults.items())[:SHOWN]]
        more = f" and {len(self.faults) - SHOWN} more" if len(self.faults) > SHOWN else ""
        self.health.check("tendons", bool(named), Level.WARN, f"left out: {'; '.join(named)}{more}")

    def spare(self, left: float) -> None:
        """Look at what the lengths of one group tell, in turn, where there is time."""
        now = time.monotonic()
        if now - self._turned < TURN or (left < ROOM * self._cost and now - self._turned < 10 * TURN):
            return
        self._turned = now
        k = self._group = (self._group + 1) % len(self.estimator.groups)
        self._seen[self.estimator.groups[k].name] = self.estimator.observability_of(k, POSTURES)
        self._cost += SMOOTH * (time.monotonic() - now - self._cost)
        blind = self._blind() if self.estimator.settings.observation == "absolute" else ""
        self.health.check("blind", bool(blind), Level.WARN, f"the lengths do not tell these joints apart: {blind}")

    def _blind(self) -> str:
        """The joints of each group along which nothing is seen."""
        return "; ".join(f"{name}: {', '.join(o.joints)}" for name, o in self._seen.items() if not o.observable)

    def values(self) -> dict[str, Any]:
        """Figures for diagnostics; the innovations are those since it was last asked."""
        e, nis = self.estimator, self._nis
        self._nis = ChiSquareMean()
        worst = int(np.argmax(e.deviation))
        out = {
            "groups": len(e.groups),
            "joints_estimated": len(e.joint_names),
            "tendons": len(e.muscle_names),
            "tendons_left_out": "; ".join(f"{n}: {why}" for n, why in self.faults.items()),
            "nis_per_degree": round(nis.per_degree, 3),
            "deviation_max_deg": round(float(np.rad2deg(e.deviation[worst])), 3),
            "deviation_max_joint": e.joint_names[worst],
            "restarts_of_covariance": sum(f.recoveries for f in e.filters),
        }
        if self._seen:
            weakest = min(self._seen.values(), key=lambda o: (o.rank - len(o.direction), o.smallest))
            out["smallest_singular_value"] = f"{weakest.smallest:.3g}"
            out["weakest_joints"] = ", ".join(weakest.joints)
            out["unobservable"] = self._blind()
        return out

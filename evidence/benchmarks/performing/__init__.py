"""Peers that perform the same motion in the same simulated world: TSID, crocoddyl, a learned tracker, the walker."""

"""Tendon readers for MuJoCo models and CARDSflow folders."""

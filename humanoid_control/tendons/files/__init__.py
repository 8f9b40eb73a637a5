"""Tendons out of the files of others: MuJoCo models and CARDSflow folders."""

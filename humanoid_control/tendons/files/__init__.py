"""Tendons read from the files of others: MuJoCo models and CARDSflow folders."""

"""Tendon control: holdable postures, control laws, supervision and winch drive loops."""

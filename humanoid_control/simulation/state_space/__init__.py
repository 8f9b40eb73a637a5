"""A robot as one first-order model dz/dt = f(t, z, u), and integrators for it."""

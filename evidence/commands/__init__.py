"""Commands of `humanoid` that need a checkout: `study`, `bench` and `soak`."""

"""Human motion: measured forces, smooth derivatives."""

"""Commands about the machine that the package runs on."""

"""A real Triton on this machine from a wheel, without Docker: to try it, and for the tests."""

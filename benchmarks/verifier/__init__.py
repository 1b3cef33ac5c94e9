"""How good is the verifier? Mutants of real kernels, generated valid and unsafe schedules."""

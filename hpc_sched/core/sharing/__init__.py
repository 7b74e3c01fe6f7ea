"""Applications that share hosts: MDOBP, cache interference, their files (Gupta2013)."""

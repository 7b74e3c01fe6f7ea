"""What is measured of a run: a window of its time, integrals over it, the jobs submitted in it."""

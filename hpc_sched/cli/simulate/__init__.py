"""hpc-sched simulate."""

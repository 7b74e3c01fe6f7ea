"""hpc-sched metrics."""

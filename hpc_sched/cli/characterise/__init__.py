"""hpc-sched characterise."""

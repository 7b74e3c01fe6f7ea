"""The commands hpc-sched check."""

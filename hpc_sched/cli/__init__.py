"""The command hpc-sched."""

"""hpc-sched topology: show, validate, convert, diff, check."""

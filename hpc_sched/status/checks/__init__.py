"""The checks of ``hpc-sched-status upgrade check``, by subject."""

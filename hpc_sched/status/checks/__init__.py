"""The checks of ``hpc-sched-status upgrade check``, one a module."""

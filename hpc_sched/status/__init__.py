"""The command ``hpc-sched-status upgrade check``; imports Nova."""

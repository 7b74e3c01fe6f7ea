"""What ``hpc-sched-status upgrade check`` looks at, a check a module. Imports Nova."""

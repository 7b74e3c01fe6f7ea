"""hpc-sched simulate and hpc-sched experiment."""

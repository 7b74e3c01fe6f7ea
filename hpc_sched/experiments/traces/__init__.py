"""What the exact plan is worth to whole queues of jobs on a network, against other policies."""

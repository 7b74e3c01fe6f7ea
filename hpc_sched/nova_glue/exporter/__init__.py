"""The metrics of a worker of nova-scheduler: its state, its decisions, its thread."""

"""Room on hosts, as HostState and aggregates state it."""

"""Anti-affinity where one compute service has nodes below many leaves, as on bare metal."""

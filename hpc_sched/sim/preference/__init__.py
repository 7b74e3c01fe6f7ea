"""Jobs that wait for a better place than the cluster has at the moment."""

"""Room: how many VMs more each HostState takes, by HostState, Placement, NUMA, PCI, aggregates."""

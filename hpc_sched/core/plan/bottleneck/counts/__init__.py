"""The numbers of VMs that links permit below each switch within a bottleneck."""

"""Gang claims: the allocations of all VMs of a request, made in one transaction of Placement."""

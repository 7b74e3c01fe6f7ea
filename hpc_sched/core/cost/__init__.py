"""What VMs and the hosts that run them cost: core-hours, prices, revenue."""

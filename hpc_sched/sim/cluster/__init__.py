"""The simulated cluster: fabric, hosts, and what runs on them."""

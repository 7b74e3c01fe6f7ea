"""Caps: how many VMs of a request those filters of Nova allow on a host that count them."""

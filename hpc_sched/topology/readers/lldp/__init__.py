"""Ethernet fabrics, from what neighbours announce to each other by LLDP."""

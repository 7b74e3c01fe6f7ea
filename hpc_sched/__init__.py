"""Topology-aware placement of groups of HPC VMs for the OpenStack Nova scheduler."""

__version__ = "0.1.0"

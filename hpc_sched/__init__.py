"""Topology-aware placement of groups of HPC VMs for the OpenStack Nova scheduler."""

from importlib import metadata

# Of the installed package: pyproject.toml alone states the version.
__version__ = metadata.version("hpc-sched")

"""Topologies as YAML, Slurm, Graphviz, SVG and text."""

"""Slurm's topology.conf and topology.yaml."""

"""Plans of least bottleneck for a pattern: crossings on the places of ranks."""

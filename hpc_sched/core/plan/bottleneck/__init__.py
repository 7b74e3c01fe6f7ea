"""Plans of least bottleneck: no link is used more, by its capacity, than in any other plan."""

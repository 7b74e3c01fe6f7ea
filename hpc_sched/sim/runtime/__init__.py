"""Models of a job's runtime on its placement."""

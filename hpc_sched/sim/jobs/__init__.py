"""The jobs of a simulation: traces, drawn jobs, their records."""

"""Metrics of nova-scheduler's workers for Prometheus: what there is, counts, files and HTTP."""

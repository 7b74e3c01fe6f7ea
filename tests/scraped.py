"""Samples of a text in Prometheus' format."""

from prometheus_client.parser import text_string_to_metric_families

# Name and labels to value.
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples_in(text: str) -> Samples:
    """Return the samples of a scrape."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }

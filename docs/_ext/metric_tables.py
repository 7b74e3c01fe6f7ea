"""Tables of the metrics, made by the code.

``.. metric-table:: scheduler`` lists those of nova-scheduler, ``cloud`` those of hpc-sched metrics.
"""

from collections.abc import Iterator

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from hpc_sched.cli.metrics import cloud_metrics
from hpc_sched.metrics import catalogue

Row = tuple[str, str, str, str]

_MERGED = {
    "livesum": "sum of all workers",
    "livemin": "least of all workers",
    "livemax": "greatest of all workers",
    "livemostrecent": "of the worker that set it last",
}


def _of_scheduler() -> Iterator[Row]:
    for metric in catalogue.METRICS:
        merged = f" ({_MERGED[metric.merged]})" if metric.merged else ""
        labels = (
            f"``{name}``" + (f": {', '.join(values)}" if values else "")
            for name, values in metric.labels.items()
        )
        yield metric.exposed_name, metric.kind, "; ".join(labels), metric.help + merged


def _of_cloud() -> Iterator[Row]:
    for name, what in cloud_metrics.HELP.items():
        labels = ", ".join(f"``{label}``" for label in cloud_metrics.LABELS.get(name, ()))
        yield cloud_metrics.PREFIX + name, "gauge", labels, what


class MetricTable(SphinxDirective):
    """A table of metrics."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        rows = {"scheduler": _of_scheduler, "cloud": _of_cloud}[self.arguments[0]]
        lines = [".. list-table::", "   :header-rows: 1", "   :widths: 32 10 22 36", ""]
        for name, kind, labels, what in [("metric", "type", "labels", "meaning"), *rows()]:
            shown = name if name == "metric" else f"``{name}``"
            lines += [f"   * - {shown}", f"     - {kind}", f"     - {labels}", f"     - {what}"]
        parent = nodes.Element()
        self.state.nested_parse(StringList(lines, self.get_source_info()[0]), 0, parent)
        return parent.children


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("metric-table", MetricTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

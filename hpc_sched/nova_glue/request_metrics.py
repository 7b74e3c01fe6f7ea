"""What requests report to the metrics, which are loaded if ``metrics_address`` is set."""

from collections.abc import Collection, Mapping

from hpc_sched.core.arrays import Mask


class RequestMetrics:
    """Counts nothing; the exporter puts one that counts in its place, as :data:`current`."""

    def begun(self) -> None:
        """Note a request: the first one of a worker starts the thread that writes metrics."""

    def decided(
        self,
        answer: str,
        project: str | None,
        times: Mapping[str, float],
        shunned: Mapping[str, Mask],
        *,
        is_proven: bool,
    ) -> None:
        """Count the decision on a group.

        :param times: seconds by part of the request's time
        :param shunned: reason to the hosts that another weigher puts last
        """

    def decided_early(self, answer: str, project: str | None) -> None:
        """Count the decision on a request whose group has not been read."""

    def claimed(self, *, is_held: bool) -> None:
        """Count a plan that was to be claimed at once."""

    def sent(self, answer: str) -> None:
        """Count a transaction by Placement's answer."""

    def degraded(self, source: str, others: Collection[str]) -> None:
        """Count a source that did not answer a request, unless others of its kind are counted."""

    def failed(self, plugin: str) -> None:
        """Count an exception that was caught in a filter or weigher."""

    def lost_line(self) -> None:
        """Count a line that could not be written to the decision log."""


current = RequestMetrics()

"""What a reader has found wrong or doubtful in a text, with its lines."""

from hpc_sched import exceptions

# Who reads more of them mends the first ones first.
MAX_PROBLEMS = 100
MAX_REMARKS = 100
# A line of a hostile file may be as long as the file.
MAX_TEXT = 400


class Problems:
    """Collects problems and remarks on one text."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._problems: list[str] = []
        self._remarks: list[str] = []
        self._more_remarks = 0

    def note(self, line: int | None, text: str) -> None:
        """Add a problem.

        :param line: from 1; None where the whole text is meant
        :raises exceptions.TopologyError: with all problems, where they are many
        """
        self._problems.append(self._sentence(line, text))
        if len(self._problems) >= MAX_PROBLEMS:
            self.stop()

    def remark(self, line: int | None, text: str) -> None:
        """Add something that is put right or doubted."""
        if len(self._remarks) < MAX_REMARKS:
            self._remarks.append(self._sentence(line, text))
        else:
            self._more_remarks += 1

    def stop(self) -> None:
        """Go on only where nothing is wrong.

        :raises exceptions.TopologyError: with all problems so far
        """
        if self._problems:
            raise exceptions.TopologyError(*self._problems)

    def error(self, line: int | None, text: str) -> exceptions.TopologyError:
        """Return the error that tells all problems so far and a last one."""
        return exceptions.TopologyError(*self._problems, self._sentence(line, text))

    @property
    def remarks(self) -> tuple[str, ...]:
        """The remarks, as many as somebody reads."""
        more = self._more_remarks
        return (*self._remarks, *([f"{self.path}: and {more} more remarks"] if more else []))

    def _sentence(self, line: int | None, text: str) -> str:
        where = self.path if line is None else f"{self.path}:{line}"
        return f"{where}: {shortened(text)}"


def shortened(text: str) -> str:
    """Return a text, cut where it is too long to be read."""
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}..."

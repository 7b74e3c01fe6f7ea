"""What the commands' help ends with, in the reference as it stands on a terminal.

cliff takes examples, tables and exit codes for reStructuredText, and joins their lines.
"""

import argparse
from collections.abc import Iterator

from cliff import sphinxext
from sphinx.application import Sphinx


def _verbatim(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the lines of a literal block."""
    if parser.epilog:
        yield from (".. code-block:: text", "")
        yield from (f"    {line}".rstrip() for line in parser.epilog.strip().splitlines())


def setup(_app: Sphinx) -> dict[str, bool]:
    """Put it in the place of cliff's own."""
    sphinxext._format_epilog = _verbatim
    return {"parallel_read_safe": True, "parallel_write_safe": True}

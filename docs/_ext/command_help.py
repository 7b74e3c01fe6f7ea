"""The end of each command's help, in the reference as on a terminal.

cliff would parse examples, tables and exit codes as reStructuredText and join their lines.
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
    """Replace cliff's own formatting."""
    sphinxext._format_epilog = _verbatim
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""Texts of other software without the passwords that it repeats from nova.conf."""

import re

# What stands before the host in the URL of a database or a message queue, also where the URL is
# misspelt; greedy, for a password may hold the marks that should end it.
_CREDENTIALS = re.compile(r"//\S*@")
# oslo.config quotes the line that it cannot read.
_LINE = re.compile(r"(in assignment: ).*", re.DOTALL)


def masked(text: str) -> str:
    """Return a text of an error with ``***`` in place of credentials and of quoted lines."""
    return _LINE.sub(r"\1***", _CREDENTIALS.sub("//***@", text))


def first_line(error: BaseException) -> str:
    """Return an error's kind and the first line of what it says, masked.

    SQLAlchemy adds the statement and a link in further lines.
    """
    first = (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__}: {masked(first)}"

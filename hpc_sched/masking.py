"""Error texts of other software without passwords of nova.conf."""

import re

# The credentials in the URL of a database or a message queue, misspelt URLs included. Greedy,
# because a password may hold the marks that should end it.
_CREDENTIALS = re.compile(r"//\S*@")
# oslo.config quotes the line that it cannot read.
_LINE = re.compile(r"(in assignment: ).*", re.DOTALL)


def masked(text: str) -> str:
    """Return an error text with ``***`` in place of credentials and quoted lines."""
    return _LINE.sub(r"\1***", _CREDENTIALS.sub("//***@", text))


def first_line(error: BaseException) -> str:
    """Return the type of an error and the first line of its text, masked.

    SQLAlchemy adds the statement and a link in further lines.
    """
    first = (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__}: {masked(first)}"

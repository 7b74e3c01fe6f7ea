"""Error texts of other software without passwords of nova.conf."""

import re

# The credentials in the URL of a database or a message queue, misspelt URLs included. Greedy,
# because a password may hold the marks that should end it.
_CREDENTIALS = re.compile(r"//\S*@")
# oslo.config quotes the line that it cannot read, and what follows a $ in a value.
_QUOTED = (
    re.compile(r"(in assignment: ).*", re.DOTALL),
    re.compile(r"(no such option )\S+"),
)


def masked(text: str) -> str:
    """Return an error text with ``***`` in place of credentials and quoted values."""
    text = _CREDENTIALS.sub("//***@", text)
    for quoted in _QUOTED:
        text = quoted.sub(r"\1***", text)
    return text


def first_line(error: BaseException) -> str:
    """Return type and first line of an error, masked; SQLAlchemy adds statement and link below."""
    first = (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__}: {masked(first)}"

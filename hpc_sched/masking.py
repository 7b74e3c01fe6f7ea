"""Error texts of other software without passwords of nova.conf."""

import re

# What is masked, behind the part that stays.
_SECRETS = (
    # The credentials in the URL of a database or a message queue, misspelt URLs included. Greedy,
    # because a password may hold the marks that should end it.
    re.compile(r"(//)\S*(?=@)"),
    # oslo.config quotes the line that it cannot read, and what follows a $ in a value.
    re.compile(r"(in assignment: ).*", re.DOTALL),
    re.compile(r"(no such option )\S+"),
)


def masked(text: str) -> str:
    """Return an error text with ``***`` in place of credentials and quoted values."""
    for secret in _SECRETS:
        text = secret.sub(r"\1***", text)
    return text


def first_line(error: BaseException) -> str:
    """Return type and first line of an error, masked; SQLAlchemy adds statement and link below."""
    first = (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__}: {masked(first)}"

"""Texts of a snapshot or a log as a terminal may show them."""


def text_of(found: str) -> str:
    """Return a text on one line, with an escape such as ``\\x1b`` for each control character.

    A file that somebody has sent may hold names that would steer the terminal.
    """
    if found.isprintable():
        return found
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in found
    )

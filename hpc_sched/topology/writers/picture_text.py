"""Text in a picture that never runs out of its box.

It is set in a font whose letters are all equally wide, so that its width is known without the font.
"""

import html
import re
import unicodedata

FONT = "'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace"

_EM = 0.61  # width of a letter of size 1; the widest of these fonts have 0.602
_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
# What XML 1.0 cannot hold, not even escaped.
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def width_of(text: str, size: int) -> int:
    """Return the width of a text in pixels, rounded up.

    :param size: of its letters, in pixels; letters of East Asia take the room of two
    """
    letters = sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
    return int(letters * size * _EM) + 1


def cut(text: str, room: int, size: int) -> str:
    """Return a text as far as there is room for it, with an ellipsis where its middle was.

    Names of switches are often alike but for their ends.
    """
    if width_of(text, size) <= room:
        return text
    for left in range(min(len(text) - 1, int(room / (size * _EM))), 0, -1):
        shown = text[: left - left // 2] + _ELLIPSIS + text[len(text) - left // 2 :]
        if width_of(shown, size) <= room:
            return shown
    return _ELLIPSIS


def legal(text: str) -> str:
    """Return a text as XML can hold it."""
    return html.escape(_ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", text), quote=False)

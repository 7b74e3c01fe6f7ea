"""Text in SVG that never exceeds its box.

Set in monospaced fonts, so that its width is known without the font.
"""

import html
import re
import unicodedata

FONT = "'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace"

_EM = 0.61  # width of a character at font size 1; the widest of these fonts have 0.602
_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
# Characters that XML 1.0 forbids, even escaped.
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def width_of(text: str, size: int) -> int:
    """Return the width of a text in pixels, rounded up.

    East Asian wide characters count twice.

    :param size: font size, px
    """
    letters = sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
    return int(letters * size * _EM) + 1


def cut(text: str, room: int, size: int) -> str:
    """Return a text that fits the room, with an ellipsis for its middle.

    Names of switches often differ in their ends alone.

    :param room: width, px
    :param size: font size, px
    """
    if width_of(text, size) <= room:
        return text
    for left in range(min(len(text) - 1, int(room / (size * _EM))), 0, -1):
        shown = text[: left - left // 2] + _ELLIPSIS + text[len(text) - left // 2 :]
        if width_of(shown, size) <= room:
            return shown
    return _ELLIPSIS


def legal(text: str) -> str:
    """Return a text escaped for XML 1.0, without characters that it forbids."""
    return html.escape(_ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", text), quote=False)

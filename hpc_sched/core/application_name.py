"""How applications are named, in flavors (``hpc:app_name``) and in the interference index."""

import re

PATTERN = r"[A-Za-z0-9._+-]{1,255}"
EXPECTED = "an application's name of 1 to 255 letters, digits and . _ + -"

_NAME = re.compile(PATTERN)


def is_name(text: str) -> bool:
    """Tell whether an application can be called so."""
    return _NAME.fullmatch(text) is not None

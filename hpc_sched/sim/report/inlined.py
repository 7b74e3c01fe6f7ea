"""Pictures of matplotlib as parts of an HTML page.

All pictures of a page share its ids and styles. matplotlib writes for a file of its own: its clip
paths, named by content, and its rules for ``*`` would affect the other pictures.
"""

import re

# Reads only what matplotlib has just written.
import xml.etree.ElementTree as ET  # nosec B405

from markupsafe import Markup

_REFERENCE = re.compile(r"url\(#([^)]*)\)")
_PIXELS = 4 / 3  # of a point
# The rules that matplotlib states for all elements; they are inherited from the outermost.
_INHERITED = {"stroke-linejoin": "round", "stroke-linecap": "butt"}


def inlined(svg: str, name: str, label: str) -> Markup:
    """Return a picture whose ids have a prefix; unused ids are removed.

    Linear in the text.

    :param name: the prefix; unique on the page
    :param label: text for screen readers
    """
    root = ET.fromstring(svg)  # nosec B314
    for parent in list(root.iter()):
        for child in list(parent):
            if _local(str(child.tag)) in ("metadata", "style"):
                parent.remove(child)
    elements = list(root.iter())
    for element in elements:
        element.tag = _local(str(element.tag))
        element.attrib = {_local(key): value for key, value in element.attrib.items()}
    ids: dict[str, str] = {}
    for element in elements:
        for key, value in element.attrib.items():
            for target in _targets(key, value):
                ids.setdefault(target, f"{name}-{len(ids) + 1}")
    for element in elements:
        _rename(element, ids)
    _, _, width, height = root.attrib["viewBox"].split()
    root.attrib = {
        "class": "plot",
        "role": "img",
        "aria-label": label,
        "viewBox": root.attrib["viewBox"],
        "width": f"{float(width) * _PIXELS:g}",
        "height": f"{float(height) * _PIXELS:g}",
        **_INHERITED,
    }
    # Texts are escaped by ElementTree.
    return Markup(ET.tostring(root, encoding="unicode"))  # nosec B704


def _local(name: str) -> str:
    """Return a name without its namespace: HTML knows by itself what is SVG."""
    return name.rpartition("}")[2]


def _targets(key: str, value: str) -> list[str]:
    if key == "href":
        return [value[1:]] if value.startswith("#") else []
    return _REFERENCE.findall(value)


def _rename(element: ET.Element, ids: dict[str, str]) -> None:
    own = element.attrib.pop("id", None)
    if own in ids:
        element.attrib["id"] = ids[own]
    for key, value in element.attrib.items():
        if key == "href" and value.startswith("#"):
            element.attrib[key] = f"#{ids[value[1:]]}"
        elif "url(#" in value:
            element.attrib[key] = _REFERENCE.sub(lambda found: f"url(#{ids[found[1]]})", value)

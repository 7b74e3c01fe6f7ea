"""The templates of pages."""

from typing import Any

import jinja2

from hpc_sched.page import picture


def rendered(name: str, package: str | None = None, **values: Any) -> str:
    """Return a page of a template and its values. Same input, same text.

    :param package: with ``templates`` of its own; those that all pages share can be had too
    """
    packages = ["hpc_sched.page", *([package] if package else [])]
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(one, "templates") for one in packages]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return picture.legal(environment.get_template(name).render(**values))

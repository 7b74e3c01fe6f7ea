"""The templates of pages."""

import jinja2


def environment(package: str | None = None) -> jinja2.Environment:
    """Return the environment of the templates that all pages share.

    :param package: with ``templates`` of its own
    """
    packages = ["hpc_sched.page", *([package] if package else [])]
    return jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(name, "templates") for name in packages]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )

"""Screens and pictures of the documentation, made by the code when the documentation is built.

``.. screen:: COMMAND`` runs a command of hpc-sched in the folder ``examples`` and shows its
output; an exit code other than ``:exit:`` (default 0) fails the build.
``.. fabric-picture:: NAME`` draws one of the fabrics of ``examples.py``.
``.. status-checks::`` lists the checks of ``hpc-sched-status upgrade check``.
"""

import os
import shlex
import subprocess
import sys
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

HERE = Path(__file__).resolve().parent
WIDTH = 100
SECONDS = 300


class Screen(SphinxDirective):
    """The output of a command."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {"exit": directives.nonnegative_int}  # noqa: RUF012 - as docutils has it

    def run(self) -> list[nodes.Node]:
        """Return the command line and its output."""
        command = " ".join(self.arguments[0].split())
        program, *arguments = shlex.split(command)
        done = subprocess.run(
            [sys.executable, "-m", {"hpc-sched": "hpc_sched.cli.main"}[program], *arguments],
            cwd=self.env.app.examples,
            env={**os.environ, "COLUMNS": str(WIDTH), "PYTHONIOENCODING": "utf-8"},
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=SECONDS,
            check=False,
        )
        if done.returncode != self.options.get("exit", 0):
            raise self.error(f"{command}: exit code {done.returncode}\n{done.stderr}")
        shown = f"$ {command}\n{done.stderr}{done.stdout}"
        block = nodes.literal_block(shown, shown, language="text")
        self.set_source_info(block)
        return [block]


class FabricPicture(SphinxDirective):
    """A drawing of a fabric as ``hpc-sched topology convert --to svg`` makes it."""

    required_arguments = 1
    option_spec = {"alt": directives.unchanged_required}  # noqa: RUF012 - as docutils has it

    def run(self) -> list[nodes.Node]:
        """Return the image."""
        import examples

        name = self.arguments[0]
        target = Path(self.env.srcdir) / "_build" / f"{name}.svg"
        target.parent.mkdir(exist_ok=True)
        target.write_text(examples.picture(name), encoding="utf-8")
        relative, _ = self.env.relfn2path(f"/_build/{name}.svg")
        image = nodes.image(uri=f"/{relative}", alt=self.options.get("alt", name))
        self.set_source_info(image)
        return [image]


class StatusChecks(SphinxDirective):
    """The checks of hpc-sched-status in their order, with the first sentence of each."""

    def run(self) -> list[nodes.Node]:
        """Return a list of definitions."""
        # The first of the two modules prepares Nova for the second one.
        from hpc_sched.status import command_line  # noqa: F401
        from hpc_sched.status.upgrade_check import CHECKS

        listed = nodes.definition_list()
        for check in CHECKS:
            said = check.sentence or check.find.__doc__ or ""
            first = " ".join(said.split("\n\n")[0].split())
            sentence, _ = self.parse_inline(first.removeprefix("Return "))
            shown = nodes.paragraph("", "", *sentence)
            listed += nodes.definition_list_item(
                "", nodes.term(text=check.name), nodes.definition("", shown)
            )
        return [listed]


def _prepare(app: Sphinx) -> None:
    import examples

    app.examples = Path(app.doctreedir).parent / "examples"
    examples.write(app.examples)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("screen", Screen)
    app.add_directive("fabric-picture", FabricPicture)
    app.add_directive("status-checks", StatusChecks)
    app.connect("builder-inited", _prepare)
    return {"parallel_read_safe": False, "parallel_write_safe": True}

"""Release notes of the documentation.

``.. release-notes::`` is reno's directive: it shows the notes by the tags of git. Without their
history, in an unpacked sdist, a shallow clone or a clone without tags, nothing says which release
a note belongs to. All notes are then shown as those up to the version of the tree.
"""

from pathlib import Path

import reno.sphinxext
import yaml
from docutils import nodes
from dulwich.errors import NotGitRepository
from dulwich.repo import Repo
from reno.config import Config
from reno.formatter import format_report
from reno.loader import Loader
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]


def has_history(folder: Path) -> bool:
    """True if a folder is a git checkout with all its commits, and a tag."""
    try:
        repository = Repo(str(folder))
    except NotGitRepository:
        return False
    with repository:
        return not repository.get_shallow() and any(repository.refs.keys(b"refs/tags"))


class AllNotes(Loader):
    """The notes in a folder, as those of one version, which is the title of the section."""

    def __init__(self, conf: Config, title: str) -> None:
        self._title = title
        super().__init__(conf)

    def _load_data(self) -> None:
        paths = sorted(Path(self._reporoot, self._notespath).glob("*.yaml"))
        contents = {path.name: yaml.safe_load(path.read_text(self._encoding)) for path in paths}
        self._cache = {"file-contents": contents}
        self._scanner_output = {self._title: [(path.name, "tree") for path in paths]}
        self._tags_to_dates = {}


class ReleaseNotes(reno.sphinxext.ReleaseNotesDirective, SphinxDirective):
    """The notes of this project, by release where that is known."""

    def run(self) -> list[nodes.Node]:
        """Return a section a release."""
        notes = ROOT / "releasenotes" / "notes"
        self.env.note_dependency(str(notes))
        self.options["reporoot"] = str(ROOT)
        if has_history(ROOT):
            return super().run()
        conf = Config(str(ROOT), "releasenotes")
        with AllNotes(conf, f"Up to {self.config.version}") as loader:
            text = format_report(loader, conf, loader.versions)
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive("release-notes", ReleaseNotes)
    return {"parallel_read_safe": True}

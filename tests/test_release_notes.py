"""The release notes can be read by reno, and the page of them is built with any history."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

pytest.importorskip("reno")
pytest.importorskip("sphinx")

ROOT = Path(__file__).resolve().parents[1]
NOTES = sorted((ROOT / "releasenotes" / "notes").glob("*.yaml"))
# Nothing of the user's own settings of git.
GIT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "t"),
    **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "t@example.org"),
}


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the notes of a tree as ``.ci/run`` does."""
    return subprocess.run(
        [folder / ".ci" / "notes"],
        env={**GIT, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
    )


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, env=GIT, check=True)


class Project:
    """A project with this one's settings of reno, the extension of its pages, and two notes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT / "docs" / "_ext", folder / "docs" / "_ext")
        (folder / ".ci").mkdir()
        shutil.copy(ROOT / ".ci" / "notes", folder / ".ci")
        self.notes = folder / "releasenotes" / "notes"
        self.notes.mkdir(parents=True)
        shutil.copy(ROOT / "releasenotes" / "config.yaml", folder / "releasenotes")
        shutil.copy(ROOT / "docs" / "release_notes.rst", folder / "docs" / "index.rst")
        page = (folder / "docs" / "index.rst").read_text()
        # The pages that it names are not here.
        (folder / "docs" / "index.rst").write_text(page.replace(":doc:", ""))
        (folder / "docs" / "conf.py").write_text(
            "import os, sys\n"
            "sys.path.insert(0, os.path.join(os.path.dirname(__file__), '_ext'))\n"
            "extensions = ['release_notes']\n"
            "version = '2.0'\n"
        )

    def note(self, word: str, uid: str) -> None:
        (self.notes / f"{word}-{uid * 16}.yaml").write_text(f"---\nfeatures:\n  - The {word}.\n")

    def commit(self, tag: str | None = None) -> None:
        if not (self.folder / ".git").exists():
            git(self.folder, "init", "-q")
        git(self.folder, "add", ".")
        git(self.folder, "commit", "-q", "-m", "c")
        if tag:
            git(self.folder, "tag", tag)


def shown(folder: Path, cwd: Path | None = None) -> list[str]:
    """Return the lines of a project's page, built with warnings as errors."""
    command = ["-m", "sphinx", "-W", "-q", "-E", "-b", "text", str(folder / "docs")]
    done = subprocess.run(
        [sys.executable, *command, str(folder / "built")],
        cwd=cwd or folder,
        env=GIT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    lines = (folder / "built" / "index.txt").read_text().splitlines()
    # What is below the introduction, without underlines.
    below = lines[lines.index("") + 1 :]
    return [line for line in below[below.index("") :] if line.strip("=-* ")]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def test_every_note_is_one_that_reno_accepts():
    done = lint(ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "reno lint: no mistakes\n"


def test_a_note_with_a_section_of_another_name_is_refused_also_outside_git(project: Project):
    (project.notes / "wrong-0123456789abcdef.yaml").write_text("---\nfeature:\n  - A.\n")
    done = lint(project.folder)
    assert done.returncode == 1
    assert "unrecognized section name feature" in done.stderr


def test_there_is_a_note_and_none_is_empty():
    assert NOTES
    for path in NOTES:
        sections = yaml.safe_load(path.read_text())
        assert sections, path.name
        for name, items in sections.items():
            texts = [items] if name == "prelude" else items
            assert all(isinstance(text, str) and text.strip() for text in texts), (path.name, name)


def test_the_template_of_a_new_note_is_a_note():
    settings = yaml.safe_load((ROOT / "releasenotes" / "config.yaml").read_text())
    template = yaml.safe_load(settings["template"])
    assert set(template) <= {"features", "upgrade", "deprecations", "security", "fixes", "issues"}


def test_notes_are_under_the_tag_that_first_had_them_and_newer_ones_in_development(
    project: Project, tmp_path: Path
):
    project.note("old", "a")
    project.commit("v1.0.0")
    project.note("new", "b")
    project.commit()
    newest = ["In development", "New Features", "* The new."]
    assert shown(project.folder) == [*newest, "v1.0.0", "New Features", "* The old."]
    # From wherever the pages are built.
    assert shown(project.folder, cwd=tmp_path)[:3] == newest


def test_a_tagged_commit_has_its_notes_under_its_tag(project: Project):
    project.note("old", "a")
    project.commit("v1.0.0")
    project.note("new", "b")
    project.commit("v2.0.0")
    assert shown(project.folder)[:3] == ["v2.0.0", "New Features", "* The new."]


ALL = ["Up to 2.0", "New Features", "* The new.", "* The old."]


def test_without_a_tag_the_page_has_all_notes(project: Project):
    project.note("old", "a")
    project.note("new", "b")
    project.commit()
    assert shown(project.folder) == ALL


def test_a_shallow_clone_has_all_notes_with_and_without_the_tag(project: Project, tmp_path: Path):
    project.note("old", "a")
    project.commit("v1.0.0")
    project.note("new", "b")
    project.commit()
    for name, tag in (("untagged", None), ("tagged", "v2.0.0")):
        if tag:
            git(project.folder, "tag", tag)
        source, clone = f"file://{project.folder}", tmp_path / name
        git(tmp_path, "clone", "-q", "--depth", "1", source, str(clone))
        assert shown(clone) == ALL


def test_an_unpacked_sdist_has_all_notes_also_in_the_checkout_of_something_else(
    project: Project, tmp_path: Path
):
    project.note("old", "a")
    project.note("new", "b")
    assert shown(project.folder) == ALL
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "c")
    git(tmp_path, "tag", "v9.0.0")
    assert shown(project.folder) == ALL

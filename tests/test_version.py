"""The version is that of the tag, and the release notes agree with it."""

import os
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import hpc_sched
from tests import checkouts
from tests.checkouts import GIT, ROOT

OTHER = 12345  # a user
# Files that name a wheel.
NAMES = {
    "README.rst": "   pip install hpc_sched-{}-py3-none-any.whl\n",
    "docs/examples/Dockerfile": "COPY hpc_sched-{}-py3-none-any.whl /tmp/\n",
}


class Checkout:
    """A repository with the script, a pyproject.toml, two files that name a wheel, and notes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / ".ci").mkdir(parents=True)
        shutil.copy(ROOT / ".ci" / "version", folder / ".ci")
        (folder / "docs" / "examples").mkdir(parents=True)

    def write(self, version: str) -> None:
        """Write what has the version."""
        (self.folder / "pyproject.toml").write_text(f'[project]\nversion = "{version}"\n')
        for name, text in NAMES.items():
            (self.folder / name).write_text(text.format(version.partition(".dev")[0]))

    def commit(self, version: str, note: str | None = None, tag: str | None = None) -> None:
        """Commit a version, with a new note; tag the commit."""
        self.write(version)
        if note:
            path = self.folder / "releasenotes" / "notes" / f"{note}-0123456789abcdef.yaml"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"features:\n  - {note}\n")
        checkouts.commit(self.folder, version)
        if tag:
            checkouts.git(self.folder, "tag", tag)

    def checked(self, *arguments: str) -> tuple[int, str]:
        """Return the exit code of the script and what it prints."""
        done = subprocess.run(
            [sys.executable, ".ci/version", *arguments],
            cwd=self.folder,
            env=GIT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return done.returncode, done.stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "checkout")


def test_the_version_of_this_tree_is_right():
    done = subprocess.run([ROOT / ".ci" / "version"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_one_file_has_the_version():
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert hpc_sched.__version__ == metadata.version("hpc-sched") == stated, "run: pip install -e ."


@pytest.mark.parametrize("tag", ["v0.2.0", "0.2.0"])
def test_a_commit_with_the_tag_of_its_version_passes(checkout: Checkout, tag: str):
    checkout.commit("0.1.0", note="first", tag="v0.1.0")
    checkout.commit("0.2.0", note="second", tag=tag)
    assert checkout.checked() == (0, f"version 0.2.0: compared with {tag}, v0.1.0\n")


def test_another_version_than_that_of_the_tag_fails(checkout: Checkout):
    checkout.commit("0.1.0", note="first", tag="v0.2.0")
    code, text = checkout.checked()
    assert code == 1
    assert text == "pyproject.toml: version 0.1.0: expected 0.2.0, HEAD has the tag v0.2.0\n"


def test_a_tag_on_a_version_in_development_fails(checkout: Checkout):
    checkout.commit("0.1.0.dev0", note="first", tag="v0.1.0")
    code, text = checkout.checked()
    assert (code, text.count("\n")) == (1, 1)
    assert "version 0.1.0.dev0: expected 0.1.0, HEAD has the tag v0.1.0" in text


def test_a_tag_that_names_no_release_is_ignored(checkout: Checkout):
    checkout.commit("0.1.0", tag="before-the-move")
    assert checkout.checked() == (0, "version 0.1.0: compared with no tags: there are none\n")


@pytest.mark.parametrize("version", ["0.1.0", "0.0.9", "0.1.0.dev3"])
def test_the_version_is_raised_after_a_release(checkout: Checkout, version: str):
    checkout.commit("0.1.0", note="first", tag="v0.1.0")
    checkout.commit(version)
    code, text = checkout.checked()
    assert code == 1
    assert f"version {version}: expected one above v0.1.0, an earlier tag" in text
    checkout.commit("0.2.0.dev0")
    assert checkout.checked() == (0, "version 0.2.0.dev0: compared with v0.1.0\n")


def test_versions_are_compared_as_numbers(checkout: Checkout):
    checkout.commit("0.9.0", note="first", tag="v0.9.0")
    checkout.commit("0.10.0", note="second", tag="v0.10.0")
    checkout.commit("0.11.0.dev0")
    assert checkout.checked() == (0, "version 0.11.0.dev0: compared with v0.10.0\n")


def test_a_release_without_a_note_of_its_own_fails(checkout: Checkout):
    checkout.commit("0.1.0", note="first", tag="v0.1.0")
    checkout.commit("0.2.0", tag="v0.2.0")
    code, text = checkout.checked()
    assert code == 1
    assert text == "releasenotes/notes: no note since v0.1.0 for 0.2.0: expected at least one\n"


def test_the_first_release_has_a_note(checkout: Checkout):
    checkout.commit("0.1.0", tag="v0.1.0")
    assert checkout.checked() == (
        1,
        "releasenotes/notes: no note for 0.1.0: expected at least one\n",
    )


def test_a_version_that_is_no_release_of_ours_fails(checkout: Checkout):
    checkout.commit("0.1")
    code, text = checkout.checked()
    assert code == 1
    assert "version '0.1': expected X.Y.Z or X.Y.Z.devN" in text


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("version", ["0.2.0", "0.2.0.dev3"])
def test_a_page_that_names_another_release_fails(checkout: Checkout, name: str, version: str):
    checkout.commit(version)
    assert checkout.checked()[0] == 0
    (checkout.folder / name).write_text("pip install hpc_sched-0.2.0.dev3-py3-none-any.whl\n")
    said = f"{name}: names 0.2.0.dev3: expected 0.2.0, which .ci/version {version} writes\n"
    assert checkout.checked() == (1, said)


def test_the_version_is_set_in_all_files_that_have_it(checkout: Checkout):
    checkout.write("0.1.0")
    assert checkout.checked("0.2.0.dev0") == (0, "\n".join(["pyproject.toml", *NAMES, ""]))
    assert checkout.checked()[1].startswith("version 0.2.0.dev0: ")
    for name in NAMES:
        assert "hpc_sched-0.2.0-py3" in (checkout.folder / name).read_text()
    # The pages have the name of the release already.
    assert checkout.checked("0.2.0") == (0, "pyproject.toml\n")
    assert checkout.checked("0.2.0") == (0, "")


@pytest.mark.parametrize("version", ["0.2", "v0.2.0", "0.2.0rc1"])
def test_what_is_no_version_is_not_set(checkout: Checkout, version: str):
    checkout.write("0.1.0")
    code, text = checkout.checked(version)
    assert code == 2
    assert f"'{version}': expected X.Y.Z or X.Y.Z.devN" in text
    assert checkout.checked()[1].startswith("version 0.1.0: ")


def test_outside_git_there_is_nothing_to_compare_with(checkout: Checkout):
    """As in an unpacked sdist, also where that is in the checkout of something else."""
    checkout.write("0.1.0")
    said = (0, "version 0.1.0: compared with no tags: not a git checkout\n")
    assert checkout.checked() == said
    subprocess.run(["git", "init", "-q", ".."], cwd=checkout.folder, env=GIT, check=True)
    assert checkout.checked() == said


@pytest.mark.parametrize(
    ("version", "tag", "code", "text"),
    [
        ("0.2.0", "v0.2.0", 0, "compared with v0.2.0 (shallow clone: earlier tags"),
        ("0.2.0", None, 0, "compared with no tags: there are none (shallow clone"),
        ("0.3.0", "v0.2.0", 1, "version 0.3.0: expected 0.2.0, HEAD has the tag v0.2.0"),
    ],
    ids=["the tag is that version", "no tag", "another tag"],
)
def test_a_shallow_clone_knows_the_tag_of_its_commit_alone(
    checkout: Checkout, tmp_path: Path, version: str, tag: str | None, code: int, text: str
):
    checkout.commit("0.1.0", note="first", tag="v0.1.0")
    checkout.commit("0.1.1.dev0", note="second")
    checkout.commit(version, tag=tag)
    clone = tmp_path / "clone"
    source = f"file://{checkout.folder}"
    subprocess.run(["git", "clone", "-q", "--depth", "1", source, clone], env=GIT, check=True)
    checkout.folder = clone
    found, said = checkout.checked()
    assert found == code
    assert text in said


def test_a_checkout_of_another_owner_is_compared_too(checkout: Checkout):
    if os.geteuid() != 0:
        pytest.skip("only root may give a file to another user")
    checkout.commit("0.1.0", note="first", tag="v0.2.0")
    for path in (checkout.folder, *checkout.folder.rglob("*")):
        os.chown(path, OTHER, OTHER, follow_symlinks=False)
    code, text = checkout.checked()
    assert code == 1
    assert "version 0.1.0: expected 0.2.0, HEAD has the tag v0.2.0" in text


@pytest.mark.parametrize("inside", [False, True], ids=["alone", "in a repository"])
def test_a_checkout_that_git_cannot_read_is_an_error(checkout: Checkout, inside: bool):
    if inside:
        checkouts.git(checkout.folder.parent, "init", "-q")
    checkout.commit("0.1.0", note="first", tag="v0.1.0")
    (checkout.folder / ".git" / "HEAD").write_text("")
    code, text = checkout.checked()
    assert code == 1
    assert text == "git cannot read this checkout, see git status: is HEAD a release?\n"

"""A release as docs/releasing.rst has it, in a copy of this tree: version, tag, what is built.

Building itself, with the network, is for ``test_distributions.py``.
"""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tests import checkouts
from tests.checkouts import GIT, ROOT, git

pytestmark = pytest.mark.ci

PAGE = (ROOT / "docs" / "releasing.rst").read_text()
# Not what .ci/version looks for: nothing that names a wheel may escape it.
WHEEL = re.compile(r"hpc_sched-([0-9][^-\s]*)-py3")


def run(tree: Path, *command: str) -> tuple[int, str]:
    """Return the exit code of a script of the tree and what it prints."""
    done = subprocess.run(
        command,
        cwd=tree,
        env={**GIT, "PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout


def named(tree: Path) -> set[tuple[str, str]]:
    """Return each file of README.rst and docs with the versions of the wheels that it names."""
    paths = [tree / "README.rst", *(path for path in (tree / "docs").rglob("*") if path.is_file())]
    return {
        (str(path.relative_to(tree)), version)
        for path in paths
        for version in WHEEL.findall(path.read_text(errors="replace"))
    }


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return checkouts.copy_of_the_tree(tmp_path / "tree")


def released(tree: Path, version: str) -> None:
    """Set a version, with a note; commit and tag it: steps 1, 4 and 5."""
    code, said = run(tree, ".ci/version", version)
    assert code == 0, said
    note = tree / "releasenotes" / "notes" / f"for-{version}-0123456789abcdef.yaml"
    note.write_text("features:\n  - A feature.\n")
    checkouts.commit(tree, version)
    git(tree, "tag", f"v{version}")


def test_the_steps_lead_to_a_release_to_the_next_version_and_to_the_next_release(tree: Path):
    for command in (".ci/version X.Y.Z\n", "vX.Y.Z``", ".ci/version X.(Y+1).0.dev0\n"):
        assert command in PAGE
    naming = {name for name, _ in named(tree)}
    assert {"README.rst", "docs/install.rst", "docs/simulator.rst"} <= naming
    assert len([name for name in naming if name.startswith("docs/examples/")]) == 3

    released(tree, "7.8.0")
    assert run(tree, ".ci/version") == (0, "version 7.8.0: compared with v7.8.0\n")
    assert named(tree) == {(name, "7.8.0") for name in naming}

    assert run(tree, ".ci/version", "7.9.0.dev0")[0] == 0
    checkouts.commit(tree, "in development")
    assert run(tree, ".ci/version") == (0, "version 7.9.0.dev0: compared with v7.8.0\n")
    assert named(tree) == {(name, "7.9.0") for name in naming}

    released(tree, "7.9.0")
    assert run(tree, ".ci/version") == (0, "version 7.9.0: compared with v7.9.0, v7.8.0\n")
    assert named(tree) == {(name, "7.9.0") for name in naming}


@pytest.mark.parametrize(
    ("name", "shown"),
    [("hpc_sched/conf.py", " M hpc_sched/conf.py"), ("hpc_sched/new.py", "?? hpc_sched/new.py")],
    ids=["a file that is changed", "a file that git does not know"],
)
def test_a_release_is_not_built_from_a_tree_with_changes(tree: Path, name: str, shown: str):
    released(tree, "7.8.0")
    (tree / name).write_text("# changed\n")
    for command in ((".ci/release",), (sys.executable, ".ci/dist")):
        code, said = run(tree, *command)
        assert code == 1
        assert "HEAD has the tag v7.8.0, and this tree has changes that are not" in said
        assert shown in said.splitlines()
    assert not list(tree.glob("dist/*"))


def sources(tree: Path, target: Path) -> Path:
    """Write what is built of a tree into a folder and return it."""
    runpy.run_path(str(tree / ".ci" / "dist"))["copy_sources"](target)
    return target


def test_a_release_is_built_from_the_commit(tree: Path, tmp_path: Path):
    released(tree, "7.8.0")
    # A change that git does not show, and a file that it ignores.
    git(tree, "update-index", "--assume-unchanged", "hpc_sched/conf.py")
    committed = (tree / "hpc_sched" / "conf.py").read_text()
    (tree / "hpc_sched" / "conf.py").write_text("# changed\n")
    (tree / ".git" / "info" / "exclude").write_text("local.py\n")
    (tree / "hpc_sched" / "local.py").touch()
    built = sources(tree, tmp_path / "built")
    assert (built / "hpc_sched" / "conf.py").read_text() == committed
    assert not (built / "hpc_sched" / "local.py").exists()
    assert os.access(built / ".ci" / "run", os.X_OK)


def test_without_a_tag_changes_are_built(tree: Path, tmp_path: Path, capsys):
    git(tree, "tag", "before-the-move")
    (tree / "hpc_sched" / "conf.py").write_text("# changed\n")
    (tree / "hpc_sched" / "new.py").touch()
    built = sources(tree, tmp_path / "built")
    assert (built / "hpc_sched" / "conf.py").read_text() == "# changed\n"
    assert (built / "hpc_sched" / "new.py").exists()
    assert capsys.readouterr().err.splitlines() == [
        "No release: this tree has changes that are not committed:",
        " M hpc_sched/conf.py",
        "?? hpc_sched/new.py",
    ]


def test_a_shallow_clone_of_a_release_is_built_and_compared(tree: Path, tmp_path: Path):
    released(tree, "7.8.0")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{tree}", str(clone))
    assert run(clone, ".ci/version")[0] == 0
    assert (sources(clone, tmp_path / "built") / "pyproject.toml").exists()


@pytest.mark.parametrize("inside", [False, True], ids=["alone", "in a repository"])
def test_a_checkout_that_git_cannot_read_is_not_built(tree: Path, tmp_path: Path, inside: bool):
    """Whether HEAD is a release, with changes, is not known."""
    if inside:
        checkouts.commit(tmp_path, "with the tree")
    (tree / ".git" / "HEAD").write_text("")
    with pytest.raises(SystemExit, match="git cannot read this checkout"):
        sources(tree, tmp_path / "built")


def test_a_checkout_whose_changes_git_cannot_list_is_not_built(tree: Path, tmp_path: Path):
    (tree / ".git" / "index").write_bytes(b"damaged")
    with pytest.raises(SystemExit, match="git status fails"):
        sources(tree, tmp_path / "built")

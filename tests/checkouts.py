"""Git for tests: with none of the user's own settings, and trees of this project to commit in."""

import os
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

GIT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "t"),
    **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "t@example.org"),
}


def git(folder: Path, *arguments: str) -> None:
    """Run git in a folder; CalledProcessError if it fails."""
    subprocess.run(["git", *arguments], cwd=folder, env=GIT, check=True)


def commit(folder: Path, message: str) -> None:
    """Commit all files of a folder, which becomes a repository if it is none."""
    if not (folder / ".git").exists():
        git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)


def copy_of_the_tree(folder: Path) -> Path:
    """Copy the files of this tree, from which a release is built, into a new repository.

    It has one commit and no tags, also where this tree is a shallow clone or no checkout at all.
    """
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    is_ignored = runpy.run_path(str(ROOT / ".ci" / "dist"))["is_ignored"]
    shutil.copytree(ROOT, folder, ignore=is_ignored)
    commit(folder, "this tree")
    return folder

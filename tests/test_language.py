"""Docstrings, comments, help texts and pages keep to the words of the field.

Output of the commands and the texts of refusals are not read: they are what users already know.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "hpc_sched"

# Nouns that "who" may follow: people.
_PEOPLE = (
    "administrators?",
    "developers?",
    "engineers?",
    "operators?",
    "people",
    "person",
    "readers?",
    "tenants?",
    "those",
    "users?",
)
_NOT_A_PERSON = "".join(
    # A look-behind has one width: each noun is written out.
    rf"(?<!\b{noun}\s)"
    for pattern in _PEOPLE
    for noun in ((pattern[:-2], f"{pattern[:-2]}s") if pattern.endswith("s?") else (pattern,))
)

# What is not written, and what is written instead. A blank stands for any white space.
BANNED = {
    r"nobody": "no VM, no request, none: name what is absent",
    r"somebody|anybody": "a user, a tenant, any request: name it",
    rf"{_NOT_A_PERSON}whom?(?=\W)": "which or that; who is for people",
    r"whoever": "the user that, any process that",
    r"so many": "this many, the number, at most N",
    r"as many as": "the number of, up to, equal to",
    r"of ours": "of hpc_sched",
    r"told|tells?|telling": "return, report, log, show or say; a predicate is 'True if'",
    r"(?:makes?|made|making) ready": "load, start or prepare",
    r"as it was": "unchanged, the former value",
    r"patience": "deadline",
    r"beside": "with, in addition to, next to",
    r"(?<!-)(?:stands?(?! (?:for|in for)\b)(?!-)|stood(?! for\b)|standing)": "is, are placed",
    r"wish(?:es)?": "constraint, constraints",
    r"asked for": "requested",
    r"what is known of": "the state of",
    r"minds|(?:is|are|be) minded": "reads, checks, takes into account",
    r"(?:has|have|had) (?:a|no) say": "applies, places, does not apply",
    r"left aside": "ignored, left out",
    r"by and by": "gradually, later",
}
_PATTERNS = [
    (re.compile(rf"\b(?:{words})(?!\w)".replace(" ", r"\s+"), re.IGNORECASE), instead)
    for words, instead in BANNED.items()
]

# (file, what is found, in lower case) -> why it is right there.
ALLOWED: dict[tuple[str, str], str] = {}

# Directives of a page whose content is not prose.
_NO_PROSE = (
    "code-block",
    "fabric-picture",
    "include",
    "literalinclude",
    "screen",
    "show-options",
    "status-checks",
    "toctree",
    "autoprogram-cliff",
)
# Where help texts are: arguments of argparse and oslo.config, and the constants of the commands.
_HELP_ARGUMENTS = ("help", "description", "epilog")
_HELP_NAMES = ("HELP", "EPILOG")


class Found(NamedTuple):
    """A banned phrase at one place."""

    path: str
    line: int
    words: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.words!r}: write {self.instead}"


def blanked(text: str) -> str:
    """Return a text with its literals blanked, lines and columns unchanged."""
    return re.sub(
        r"``.+?``|`[^`]{1,200}`|\"\"?[^\"\n]{1,60}\"",
        lambda quoted: re.sub(r"[^\n]", "x", quoted.group()),
        text,
        flags=re.DOTALL,
    )


def banned_in(text: str, path: str, line: int) -> Iterator[Found]:
    """Yield the banned phrases of a text.

    :param line: the number of the text's first line
    """
    # A phrase may be broken over two lines, with the sign of a comment between its words.
    plain = re.sub(r"(?m)^(\s*)#(:?)", r"\1 \2", blanked(text))
    for pattern, instead in _PATTERNS:
        for match in pattern.finditer(plain):
            words = " ".join(match.group().split()).lower()
            yield Found(path, line + plain.count("\n", 0, match.start()), words, instead)


def comments_of(source: str) -> Iterator[tuple[int, str]]:
    """Yield each comment with the number of its first line; adjoining lines are one comment."""
    first, last, lines = 0, -1, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        alone = not token.line[: token.start[1]].strip()
        if lines and alone and token.start[0] == last + 1:
            lines.append(token.string)
        else:
            if lines:
                yield first, "\n".join(lines)
            first, lines = token.start[0], [token.string]
        last = token.start[0]
    if lines:
        yield first, "\n".join(lines)


def texts_of(source: str) -> Iterator[tuple[int, str]]:
    """Yield docstrings and help texts, each with the number of its first line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if docstring := ast.get_docstring(node, clean=False):
                yield node.body[0].lineno, docstring
        elif isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg in _HELP_ARGUMENTS:
                    yield from _strings_of(keyword.value)
        elif isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            if any(name.endswith(_HELP_NAMES) for name in names):
                yield from _strings_of(node.value)


def _strings_of(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the strings of an expression, each with the number of its first line."""
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.lineno, part.value


def prose_of(page: str) -> str:
    """Return a page in reStructuredText with its literal blocks blanked, lines unchanged."""
    kept: list[str] = []
    block: int | None = None  # the indent of the line that opened a block without prose
    for line in page.splitlines():
        indent = len(line) - len(line.lstrip())
        if block is not None:
            if not line.strip() or indent > block:
                kept.append("")
                continue
            block = None
        directive = re.match(r"\s*\.\. (?:_|(\S+?)::)", line)
        if directive:
            if directive[1] is None or directive[1] in _NO_PROSE:
                block = indent
                line = ""
        elif line.rstrip().endswith("::"):
            block = indent
        kept.append(line)
    return "\n".join(kept)


def found_in(path: Path) -> list[Found]:
    """Return the banned phrases of a module or a page, without those that are allowed."""
    name, content = str(path.relative_to(ROOT)), path.read_text()
    if path.suffix in (".rst", ".yaml"):  # release notes are reStructuredText in YAML
        texts = [(1, prose_of(content))]
    else:
        texts = [*comments_of(content), *texts_of(content)]
    found = {each for line, text in texts for each in banned_in(text, name, line)}
    return sorted(each for each in found if (each.path, each.words) not in ALLOWED)


PARTS = {
    "the pages": [ROOT / "README.rst", ROOT / "SECURITY.rst", *sorted(ROOT.glob("docs/**/*.rst"))],
    "the release notes": sorted(ROOT.glob("releasenotes/**/*.yaml")),
    "hpc_sched/*.py": sorted(PACKAGE.glob("*.py")),
    **{
        f"hpc_sched/{folder.name}": sorted(folder.rglob("*.py"))
        for folder in sorted(PACKAGE.iterdir())
        if (folder / "__init__.py").exists()
    },
}


@pytest.mark.parametrize("part", PARTS)
def test_the_words_are_those_of_the_field(part: str):
    found = [each for path in PARTS[part] for each in found_in(path)]
    assert not found, f"{len(found)} in {part}\n" + "\n".join(map(str, found))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Tell whether a VM moves.", ["tell"]),
        ("A request that nobody reads, as\n    it was.", ["nobody", "as it was"]),
        ("Who cannot be read may ask.", ["who"]),
        ("the hosts, whom Nova chose", ["whom"]),
        ("users who create groups and tenants who do not", []),
        ("The name stands for the group; VMs stand on hosts.", ["stand"]),
        ("a long-standing, outstanding stand-in that we understand", []),
        ("``wishes`` is a key, `told`_ a link, and besides there is hpc:tell_me", []),
        ("# at most so\n# many VMs", ["so many"]),
        ("the hosts beside it", ["beside"]),
    ],
)
def test_what_is_found_in_a_text(text: str, words: list[str]):
    assert sorted(each.words for each in banned_in(text, "x", 1)) == sorted(words)


def test_literal_blocks_of_pages_are_not_read_and_their_lines_count():
    page = "Text::\n\n   told\n\n.. note::\n\n   told\n\n.. code-block:: ini\n\n   told\n\ntold\n"
    assert [each.line for each in banned_in(prose_of(page), "x", 1)] == [7, 13]


def test_strings_are_read_where_they_are_documentation():
    source = 'def f():\n    """Tell."""\n    add(help="told\\n")  # so many\n    print("nobody")\n'
    texts = [*comments_of(source), *texts_of(source)]
    found = {(each.line, each.words) for line, text in texts for each in banned_in(text, "x", line)}
    assert found == {(2, "tell"), (3, "told"), (3, "so many")}


def test_every_exception_is_needed():
    phrases = {
        (each.path, each.words)
        for paths in PARTS.values()
        for path in paths
        for line, text in [
            *([(1, prose_of(path.read_text()))] if path.suffix in (".rst", ".yaml") else []),
            *([*comments_of(path.read_text())] if path.suffix == ".py" else []),
            *([*texts_of(path.read_text())] if path.suffix == ".py" else []),
        ]
        for each in banned_in(text, str(path.relative_to(ROOT)), line)
    }
    assert set(ALLOWED) <= phrases

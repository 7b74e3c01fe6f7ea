"""Inputs made from good texts by damage of every kind, the same ones for the same seed."""

import random
from collections.abc import Callable

from tests.fuzz.corpus import Corpus

MAX_BYTES = 64 * 1024


def mutated(corpus: Corpus, seed: str) -> bytes:
    """Return a text of a corpus with one to six changes, large or small."""
    rng = random.Random(seed)
    text = rng.choice(corpus.texts)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        changes = rng.choice((_CHANGES, _SMALL_CHANGES))
        text = rng.choice(changes)(text, corpus, rng)[:MAX_BYTES]
    return text


def _span(text: bytes, rng: random.Random, longest: int) -> tuple[int, int]:
    begin = rng.randint(0, len(text))
    return begin, min(len(text), begin + rng.randint(0, longest))


def _flip(text: bytes, corpus: Corpus, rng: random.Random) -> bytes:
    changed = bytearray(text)
    for _ in range(rng.randint(1, 8) if text else 0):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _noise(text: bytes, corpus: Corpus, rng: random.Random) -> bytes:
    at = rng.randint(0, len(text))
    return text[:at] + rng.randbytes(rng.randint(1, 8)) + text[at:]


def _delete(text: bytes, corpus: Corpus, rng: random.Random) -> bytes:
    begin, end = _span(text, rng, 40)
    return text[:begin] + text[end:]


def _truncate(text: bytes, corpus: Corpus, rng: random.Random) -> bytes:
    return text[: rng.randint(0, len(text))]


def _move(text: bytes, corpus: Corpus, rng: random.Random) -> bytes:
    begin, end = _span(text, rng, 80)
    rest = text[:begin] + text[end:]
    at = rng.randint(0, len(rest))
    return rest[:at] + text[begin:end] + rest[at:]


def _repeat(text: bytes, corpus: Corpus, rng: random.Random) -> bytes:
    begin, end = _span(text, rng, 80)
    return text[:end] + text[begin:end] * rng.choice((1, 1, 2, 5, 100)) + text[end:]


def _splice(text: bytes, corpus: Corpus, rng: random.Random) -> bytes:
    begin, end = _span(rng.choice(corpus.texts), rng, 200)
    other = rng.choice(corpus.texts)[begin:end]
    left, right = _span(text, rng, 60)
    return text[:left] + other + text[right:]


def _swap_lines(text: bytes, corpus: Corpus, rng: random.Random) -> bytes:
    lines = text.split(b"\n")
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    return b"\n".join(lines)


def _drop_line(text: bytes, corpus: Corpus, rng: random.Random) -> bytes:
    lines = text.split(b"\n")
    del lines[rng.randrange(len(lines))]
    return b"\n".join(lines)


def _double_line(text: bytes, corpus: Corpus, rng: random.Random) -> bytes:
    lines = text.split(b"\n")
    lines.insert(rng.randint(0, len(lines)), rng.choice(lines))
    return b"\n".join(lines)


def _small_number(text: bytes, corpus: Corpus, rng: random.Random) -> bytes:
    words = _pieces(text)
    at = [i for i, word in enumerate(words) if word.isdigit()]
    if at:
        words[rng.choice(at)] = b"%d" % rng.randrange(12)
    return b"".join(words)


def _insert_word(text: bytes, corpus: Corpus, rng: random.Random) -> bytes:
    at = rng.randint(0, len(text))
    return text[:at] + rng.choice(corpus.words) + text[at:]


def _replace_word(text: bytes, corpus: Corpus, rng: random.Random) -> bytes:
    """Replace a word by another one of the format."""
    words = _pieces(text)
    if words:
        words[rng.randrange(len(words))] = rng.choice(corpus.words)
    return b"".join(words)


def _swap_words(text: bytes, corpus: Corpus, rng: random.Random) -> bytes:
    words = _pieces(text)
    if words:
        a, b = rng.randrange(len(words)), rng.randrange(len(words))
        words[a], words[b] = words[b], words[a]
    return b"".join(words)


def _numbers(text: bytes, corpus: Corpus, rng: random.Random) -> bytes:
    """Put another number in place of one, often a huge one."""
    words = _pieces(text)
    at = [i for i, word in enumerate(words) if word.isdigit()]
    for i in rng.sample(at, min(len(at), rng.randint(1, 3))):
        words[i] = rng.choice(
            (b"0", b"00", b"1", b"7", b"300", b"1500", b"999999999", b"9" * 30, b"9" * 5000)
        )
    return b"".join(words)


def _nest(text: bytes, corpus: Corpus, rng: random.Random) -> bytes:
    opening = rng.choice((b"[", b"{", b"- ", b"(", b'"', b"[[", b"\\", b"{a: ", b"  "))
    at = rng.randint(0, len(text))
    return text[:at] + opening * rng.choice((3, 40, 2000)) + text[at:]


def _pieces(text: bytes) -> list[bytes]:
    """Return words, numbers and marks, which are the text when they are joined."""
    pieces: list[bytes] = []
    kind = None
    for i in range(len(text)):
        byte = text[i : i + 1]
        now = 0 if byte.isdigit() else 1 if byte.isalpha() else None
        if now is not None and now == kind:
            pieces[-1] += byte
        else:
            pieces.append(byte)
        kind = now
    return pieces


_Change = Callable[[bytes, Corpus, random.Random], bytes]
_CHANGES: tuple[_Change, ...] = (
    _flip,
    _noise,
    _delete,
    _truncate,
    _move,
    _repeat,
    _splice,
    _swap_lines,
    _insert_word,
    _insert_word,
    _replace_word,
    _replace_word,
    _swap_words,
    _numbers,
    _nest,
)
# Texts with these often remain valid.
_SMALL_CHANGES: tuple[_Change, ...] = (_swap_lines, _drop_line, _double_line, _small_number)

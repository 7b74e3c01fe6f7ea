"""Fixtures of the protocol of claims."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def quiet() -> Iterator[None]:
    """Log nothing below WARNING, and nothing of Nova, whose claims fail all the time."""
    nova = logging.getLogger("nova")
    before = nova.level
    logging.disable(logging.INFO)
    nova.setLevel(logging.CRITICAL)
    yield
    nova.setLevel(before)
    logging.disable(logging.NOTSET)

"""Errors of other software, which may repeat a password from nova.conf."""

import pytest

from hpc_sched import masking


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mysql+pymysql://nova:s3cret@db/nova gone", "mysql+pymysql://***@db/nova gone"),
        ("mysql+pymysql://nova:s3/cr'et@x@db/nova", "mysql+pymysql://***@db/nova"),
        ("mysql+pymysql//nova:s3cret@db/nova", "mysql+pymysql//***@db/nova"),
        ("'rabbit://a:s3cret@h1,b:s3cret@h2/'", "'rabbit://***@h2/'"),
        ("nova.conf:3, in assignment: 's3cret\nmore'", "nova.conf:3, in assignment: ***"),
        ("no such option cret in group [DEFAULT]", "no such option *** in group [DEFAULT]"),
        ("Access denied for user 'nova'@'db'", "Access denied for user 'nova'@'db'"),
        ("https://docs.example.org/a?b", "https://docs.example.org/a?b"),
    ],
)
def test_credentials_are_masked_and_nothing_else(text: str, expected: str):
    assert masking.masked(text) == expected


def test_of_an_error_its_kind_and_first_line_are_told():
    error = ValueError("mysql://nova:s3cret@db/x\n[SQL: SELECT s3cret]")
    assert masking.first_line(error) == "ValueError: mysql://***@db/x"
    assert masking.first_line(ValueError()) == "ValueError: "

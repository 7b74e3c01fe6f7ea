"""stub"""


def write(*a: object) -> None:
    """stub"""

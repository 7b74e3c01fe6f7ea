"""Numbers of things in words."""


def text(number: int, thing: str) -> str:
    """Return a number of things in words: ``1 host``, ``2 leaves``, ``3 leaf switches``."""
    if number == 1:
        return f"1 {thing}"
    if thing.endswith("leaf"):
        return f"{number} {thing[:-1]}ves"
    return f"{number} {thing}{'es' if thing.endswith('ch') else 's'}"

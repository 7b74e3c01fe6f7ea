"""Applications that share hosts in random lives of a cloud, and which of them must not meet."""

from tests.functional.states import wishing

APPLICATIONS = [
    wishing(app_class="extreme", app_name="IS", cache_score=47),
    wishing(app_class="sync", app_name="LU", cache_score=16),
    wishing(app_class="sync", app_name="CG", cache_score="29.3"),
    wishing(app_class="sync", app_name="ChaNGa", cache_score="7.5"),
    wishing(app_class="async", app_name="EP", cache_score="2.5"),
    wishing(app_class="async", app_name="FT", cache_score="31.7"),
    wishing(app_class="none", cache_score="12.1"),
    {},
]
# The interference index, and the pairs that it keeps apart with the tolerance by default.
INDEX = """\
LU,CG,0.70,0.98
EP,FT,0.99,0.85
CG,CG,0.60,0.60
LU,EP,0.97,1.0
"""
APART = {frozenset(pair) for pair in (("LU", "CG"), ("EP", "FT"), ("CG",))}

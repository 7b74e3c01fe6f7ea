"""Settings of all tests."""

from hypothesis import settings

# The same examples in every run: a red build is red for everybody, and a slow machine that
# shares its cores with other tests makes nothing fail.
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=100)
settings.load_profile("repeatable")

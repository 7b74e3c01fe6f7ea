"""Values of hpc:homogeneous that ask for nothing need no application class."""

import pytest

from hpc_sched.core import extra_specs
from hpc_sched.core.extra_specs import Defaults


@pytest.mark.parametrize("value", ["false", "False", "prefer", "PREFER"])
def test_a_request_without_class_may_say_that_processors_do_not_matter(value):
    read = extra_specs.read({"hpc:homogeneous": value}, {}, ("leaf",), Defaults(app_class="none"))
    assert read.faults == ()
    assert not read.is_unclear

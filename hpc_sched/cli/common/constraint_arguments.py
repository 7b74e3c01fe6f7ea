"""The options of commands for constraints."""

from functools import partial

from hpc_sched.cli.common.argument_types import Argument, argument, from_one_to, number, parsed_by
from hpc_sched.core.constraints.constraint import Constraint, LevelConstraint, Value
from hpc_sched.core.constraints.extra_spec import WHOLE_NUMBER


def constraint_argument(constraint: type[Constraint], what: str) -> Argument:
    """Return the option of a constraint.

    :param what: the help text
    """
    if issubclass(constraint, LevelConstraint):
        return argument(constraint.option(), what, metavar="LEVEL")
    if constraint.spec.pattern == WHOLE_NUMBER:
        return number(constraint.option(), what, from_one_to(constraint.spec.most or 1))
    read = parsed_by(partial(_value, constraint))
    # The valid texts of a choice are its pattern.
    metavar = "N" if constraint.spec.most is not None else constraint.spec.pattern
    return argument(constraint.option(), what, type=read, metavar=metavar)


def _value(constraint: type[Constraint], text: str) -> Value:
    value = constraint.parse(text, ())
    if value is None:
        raise ValueError(f"{text!r}: expected {constraint.expected(())}")
    return value

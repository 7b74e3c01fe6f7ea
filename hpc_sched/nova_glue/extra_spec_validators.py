"""Validators of flavor extra specs of the ``hpc:`` namespace in nova-api.

Loaded by stevedore (group ``nova.api.extra_spec_validators``) and used from microversion 2.86
on. Nova refuses every key of a namespace with validators that has none itself, such as a
misspelt ``hpc:requir``. Nova logs a warning if this module cannot be imported, but does not
start if ``register`` raises.

The scheduler checks every value again: flavors may be older than this module, and scheduler
hints are not validated here. Where the two differ, the API is stricter.
"""

from nova import exception
from nova.api.validation.extra_specs import base

from hpc_sched.core.extra_spec_names import EXTRA_SPECS


class Validator(base.ExtraSpecValidator):
    """An extra spec whose refusal names the key and the expected value.

    Nova's own text has only the value and a regular expression, although one request may set
    many keys.
    """

    def validate(self, name: str, value: str) -> None:
        """Check one extra spec; raise ValidationError (HTTP 400) for a wrong value."""
        try:
            super().validate(name, value)
            # A preference has its number behind a colon.
            is_good = "max" not in self.value or int(value.rpartition(":")[2]) <= self.value["max"]
        except exception.ValidationError:
            is_good = False
        if not is_good:
            expected = self.value["description"]
            raise exception.ValidationError(
                f"Validation failed; {name}={value!r}: expected {expected}."
            )


def register() -> list[base.ExtraSpecValidator]:
    """Return the validators of all keys in the ``hpc:`` namespace; Nova calls this once."""
    return [
        Validator(
            name=spec.name,
            description=spec.description,
            value={"type": str, "description": spec.expected, "pattern": spec.pattern}
            | ({"max": spec.most} if spec.most else {}),
        )
        for spec in EXTRA_SPECS
    ]

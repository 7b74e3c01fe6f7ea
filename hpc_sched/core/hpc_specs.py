"""The ``hpc:`` values of a request, as they were read from its flavor and hints."""

from dataclasses import dataclass, replace
from typing import Self

from hpc_sched.core.constraints import NO_CONSTRAINTS, Constraints
from hpc_sched.core.extra_spec_names import APP_CLASS, HOPS, ISOLATED


@dataclass(frozen=True, slots=True)
class HPCSpecs:
    """The ``hpc:`` values of a request; invalid ones are listed in ``faults`` and ignored.

    An unknown key is a fault if it may be a misspelt constraint on the place.
    """

    app_class: str
    constraints: Constraints
    homogeneous: str
    group_keys: tuple[str, ...]  # those of its keys that only a group can have
    faults: tuple[str, ...]  # a sentence each, without names of switches or hosts
    is_unclear: bool = False  # whether the value of a guarantee is invalid
    ignored: tuple[str, ...] = ()  # the other unknown keys, a sentence each
    by_mdobp: bool = False  # whether MDOBP, where its weigher is enabled, chooses hosts
    is_planned: bool = True  # False for a VM without a group, see :meth:`unplanned`
    objective: str = HOPS  # what the plan is best by
    pattern: str | None = None  # what its VMs send each other; None: uniform

    @property
    def by_topology(self) -> bool:
        """True if the class is packed by leaf; async is consolidated on any leaf."""
        return self.is_planned and self.app_class in ("extreme", "sync")

    @property
    def is_flat(self) -> bool:
        """True if the fabric does not matter: the cloud then counts as one leaf."""
        return not self.by_topology and not self.binds_place

    @property
    def binds_place(self) -> bool:
        """True if a guarantee of the request depends on where its VMs are in the fabric."""
        return self.constraints.bind_place or self.objective == ISOLATED

    @property
    def needs_proof(self) -> bool:
        """True if the request has any guarantee, rather than preferences alone."""
        return self.binds_place or self.is_unclear or self.homogeneous == "true"

    def group_fault(self, *, in_server_group: bool, count: int, is_implicit: bool) -> str | None:
        """Return why a new request is refused if its VMs are no group, or None.

        :param count: number of VMs of the request
        :param is_implicit: whether several VMs of one request are a group without a server group
        """
        if not self.group_keys or in_server_group or (is_implicit and count > 1):
            return None
        return (
            f"{', '.join(self.group_keys)}: only a group can have that; "
            "name a server group in the hint 'group', or create the VMs in one request"
            + ("" if is_implicit else f" with a flavor that names {APP_CLASS}")
        )

    def unplanned(self, app_class: str) -> Self:
        """Return the values of a VM that only MDOBP places, on any host.

        :param app_class: of the VM outside of groups
        """
        return replace(
            self,
            app_class=app_class,
            constraints=NO_CONSTRAINTS,
            homogeneous="false",
            by_mdobp=True,
            is_planned=False,
            objective=HOPS,
        )

    def relaxed(self) -> Self:
        """Return the same with preferences in place of guarantees."""
        return replace(
            self,
            constraints=self.constraints.relaxed(),
            homogeneous="prefer" if self.homogeneous == "true" else self.homogeneous,
            is_unclear=False,
            objective=HOPS if self.objective == ISOLATED else self.objective,
        )

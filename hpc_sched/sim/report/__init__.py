"""The report of a sweep: one self-contained HTML page."""

from hpc_sched import exceptions

try:
    from hpc_sched.sim.report.document import page
except ModuleNotFoundError as _missing:
    _package = (_missing.name or "").partition(".")[0]
    if _package not in ("jinja2", "markupsafe", "matplotlib"):
        raise
    raise exceptions.SimulationError(
        f"the report needs the package {_package}: pip install 'hpc-sched[sim]'"
    ) from _missing

__all__ = ["page"]

"""What is logged and counted of errors in hpc_sched, and of databases that do not answer."""

from oslo_log import log as logging

from hpc_sched.nova_glue import request_metrics
from hpc_sched.nova_glue.io import databases, request_deadline

LOG = logging.getLogger(__name__)


def log_outage(plugin: str, error: Exception) -> str:
    """Log, once for a request, that the API database has not answered; return it as a problem.

    :param plugin: the filter or weigher
    """
    problem = databases.api_problem(error)
    if request_deadline.not_yet_logged([problem]):
        LOG.warning("%s: %s", plugin, problem)
    return problem


def log(what: str, plugin: str) -> None:
    """Log the exception that is being handled, with its traceback, and count it.

    :param plugin: the filter or weigher in which it was caught
    """
    LOG.exception("%s", what)
    request_metrics.current.failed(plugin)

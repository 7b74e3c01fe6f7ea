"""A compute cloud of many processes, and bursts of requests through its API.

Real: MariaDB, RabbitMQ, and Placement, nova-api, nova-conductor, three nova-scheduler and 32
nova-compute as processes, each with its own entry point. Not there: Keystone (the API takes user
and roles from the headers that its middleware would set), Neutron and Glance (``edge_apis.py``),
and hypervisors (the computes have Nova's fake driver).
"""

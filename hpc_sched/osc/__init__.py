"""The commands of hpc-sched in the shell of python-openstackclient: openstack hpc ..."""

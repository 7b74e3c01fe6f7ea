"""The files of nova.conf, and the options that say where the topology comes from."""

"""Simulates programs of containers: a shell and the programs that it starts, without running anything.

``simulate`` is the face. Pure: no event loop, clock or network.
"""

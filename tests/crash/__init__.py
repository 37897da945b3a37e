"""A process dies by SIGKILL at a named point, a fresh one takes over, and the end must be the right one.

`python -m tests.crash` kills at every point, for each decision and each kind of tool, and at random moments.
"""

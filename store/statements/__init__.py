"""The steps of a run and of an approval: one data-modifying CTE each, written once.

Every statement commits by itself and carries its own guards: no row back means that somebody else was first,
or that the right to do it is gone, and that nothing was changed.
"""

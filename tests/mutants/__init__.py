"""Small patches that each take away one thing an invariant needs, and must turn tests red.

`python -m tests.mutants` runs them. A `*.patch` file has a header of three kinds of lines (`Invariant: 3`,
`Takes away: …`, and one `Red: …` for each test that must fail) and then a unified diff. A hunk is found by
its text, which must be in the file exactly once; its line numbers are only for people.
"""

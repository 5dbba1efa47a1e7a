"""Damaged and odd inputs for `aotc build`: each ends in an artifact or in a message.

A seed is a valid input: text of the samples and the tests, its bytecode, models, arrays, an
aotc.toml, a warm cache. `mutators` change a few places of one, by its structure where that is
cheap, by its bytes elsewhere. `execution` runs the command in a fresh process and says how that
ended. An ending that is no artifact and no refusal is a find: `reduction` makes the input smaller,
and `run` keeps it with the command.

    python -m tests.fuzz.run --seconds 600 --seed 7
"""

"""What is wrong with a Toy program: where, in which words, with line and caret."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import SAMPLES, Outcome

from aotc.errors import EXIT_INPUT

Aotc = Callable[..., Outcome]

# Text, and all that aotc says of it, where PATH is the file. Problems are found by step: syntax,
# then names, then shapes.
CASES = {
    "character": (
        "def main() {\n  print(1 - 2);\n}\n",
        """\
PATH:2:11: error: '-' is no part of Toy
    print(1 - 2);
            ^
""",
    ),
    "syntax": (
        "def main() {\n\tprint(1)\n}\n",
        """\
PATH:3:1: error: found '}', expected '*', '+', ';'
  }
  ^
""",
    ),
    "end": (
        "def main() {\n  var a = [1, 2",
        """\
PATH:2:16: error: the file ends here; expected ',', ']'
    var a = [1, 2
                 ^
""",
    ),
    "outside": (
        "print(1);\n",
        """\
PATH:1:1: error: found 'print', expected 'def', the end of the file
  print(1);
  ^
""",
    ),
    "no initializer": (
        "def main() {\n  var a<2>;\n}\n",
        """\
PATH:2:11: error: found ';', expected '='
    var a<2>;
            ^
""",
    ),
    "size": (
        "def main() {\n  var a<1.5> = 1;\n}\n",
        """\
PATH:2:10: error: found '.5', expected ',', '>'
    var a<1.5> = 1;
           ^
""",
    ),
    "ragged": (
        "def main() {\n\tvar a = [[1, 2], [3]];\n}\n",
        """\
PATH:2:19: error: a literal's parts have one shape: this one has <1>, the first has <2>
  \tvar a = [[1, 2], [3]];
  \t                 ^
""",
    ),
    "ragged in rank": (
        "def main() {\n  print([1, [2]]);\n}\n",
        """\
PATH:2:13: error: a literal's parts have one shape: this one has <1>, the first has <>
    print([1, [2]]);
              ^
""",
    ),
    "names": (
        "def f(a, a) {\n  print(b + f(a, c));\n}\n"
        "def g() {\n  var x = x;\n  var x = g(x);\n}\n"
        "def main() {\n  h(print(1));\n}\n",
        """\
PATH:1:10: error: there is a variable 'a' already
  def f(a, a) {
           ^
PATH:2:9: error: unknown variable 'b'. There is: a
    print(b + f(a, c));
          ^
PATH:2:13: error: 'f' gives no value
    print(b + f(a, c));
              ^
PATH:2:18: error: unknown variable 'c'. There is: a
    print(b + f(a, c));
                   ^
PATH:5:11: error: unknown variable 'x'. There is: none
    var x = x;
            ^
PATH:6:7: error: there is a variable 'x' already
    var x = g(x);
        ^
PATH:6:11: error: 'g' takes 0 arguments, not 1
    var x = g(x);
            ^
PATH:6:11: error: 'g' gives no value
    var x = g(x);
            ^
PATH:9:3: error: unknown function 'h'. There is: f, g, main, print, transpose
    h(print(1));
    ^
PATH:9:5: error: 'print' gives no value
    h(print(1));
      ^
""",
    ),
    "arguments": (
        "def main() {\n  print(1, 2);\n  print(transpose());\n}\n",
        """\
PATH:2:3: error: 'print' takes one argument, not 2
    print(1, 2);
    ^
PATH:3:9: error: 'transpose' takes one argument, not 0
    print(transpose());
          ^
""",
    ),
    "functions": (
        "def f() {}\ndef f(x) {}\ndef transpose(x) { return x; }\ndef main(x) {\n  return x;\n}\n",
        """\
PATH:2:5: error: a second function 'f'
  def f(x) {}
      ^
PATH:1:5: note: the first is here
  def f() {}
      ^
PATH:3:5: error: 'transpose' is the language's own
  def transpose(x) { return x; }
      ^
PATH:4:10: error: main takes no arguments
  def main(x) {
           ^
PATH:5:3: error: main returns nothing
    return x;
    ^
""",
    ),
    "no main": (
        "def f() {}\ndef g() {}\n",
        "aotc: error: 'PATH' has no function main, which a program is. It has: f, g.\n",
    ),
    "empty": (
        "# nothing\n",
        "aotc: error: 'PATH' has no function main, which a program is. It has: none.\n",
    ),
    "shapes": (
        "def main() {\n  print([1, 2] * 3);\n}\n",
        """\
PATH:2:16: error: '*' goes element by element: it cannot take <2> and <>
    print([1, 2] * 3);
                 ^
""",
    ),
    "shapes of a call": (
        "def add(x, y) {\n  return x + y;\n}\n"
        "def turned(x) {\n  return add(x, transpose(x));\n}\n"
        "def main() {\n  print(turned([[1, 2], [3, 4]]));\n  print(turned([[1, 2]]));\n}\n",
        """\
PATH:2:12: error: '+' goes element by element: it cannot take <1, 2> and <2, 1>
    return x + y;
             ^
PATH:5:10: note: 'add' is called with <1, 2>, <2, 1>
    return add(x, transpose(x));
           ^
PATH:9:9: note: 'turned' is called with <1, 2>
    print(turned([[1, 2]]));
          ^
""",
    ),
    "reshape": (
        "def main() {\n  var a<2, 3> = [1, 2, 3, 4];\n}\n",
        """\
PATH:2:7: error: <2, 3> has 6 elements, its value <4> 4
    var a<2, 3> = [1, 2, 3, 4];
        ^
""",
    ),
    "recursion": (
        "def f(x) { return g(x); }\ndef g(x) { return f(transpose(x)); }\n"
        "def main() {\n  f(1);\n}\n",
        """\
PATH:2:19: error: this never ends: f calls g calls f
  def g(x) { return f(transpose(x)); }
                    ^
PATH:1:19: note: 'g' is called with <>
  def f(x) { return g(x); }
                    ^
PATH:4:3: note: 'f' is called with <>
    f(1);
    ^
""",
    ),
    "main again": (
        "def main() {\n  main();\n}\n",
        """\
PATH:2:3: error: this never ends: main calls main
    main();
    ^
""",
    ),
    "depth": (
        f"def main() {{\n  print({' + '.join(['1'] * 3000)});\n}}\n",
        "aotc: error: 'PATH': its expressions or calls are nested too deep.\n",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_errors(name: str, aotc: Aotc, tmp_path: Path) -> None:
    text, said = CASES[name]
    path = tmp_path / "program.toy"
    path.write_text(text)
    done = aotc("build", path, "-o", tmp_path / "program")
    assert (done.code, done.stderr) == (EXIT_INPUT, said.replace("PATH", str(path)))


def test_what_is_no_text(aotc: Aotc, tmp_path: Path) -> None:
    path = tmp_path / "program.toy"
    path.write_bytes(b"def main() { \xff }")
    done = aotc("build", path)
    assert (done.code, done.stderr.count("\n")) == (EXIT_INPUT, 1)
    assert done.stderr.startswith(f"aotc: error: '{path}' is no text (UTF-8): ")


def test_without_the_front_end_aotc_names_it(aotc: Aotc, tmp_path: Path) -> None:
    source = SAMPLES / "toy" / "examples" / "two_products.toy"
    done = aotc("build", source, "--frontend", "mlir", "-o", tmp_path / "program")
    assert done.code == EXIT_INPUT
    assert "looks like the Toy tutorial's language" in done.stderr
    assert "hint: samples/toy is a front end for it: pip install samples/toy" in done.stderr

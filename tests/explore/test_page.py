"""The page of `aotc explore`, in a browser: Debian's chromium, driven by selenium."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aotc.cli import run
from aotc.explore.facts import KernelFacts, Launch
from aotc.explore.page import Exploration, page_of
from aotc.explore.text import Line, Text

selenium = pytest.importorskip("selenium", reason="selenium is not installed")

# A matmul, and loops whose second result the host reads.
_MODULE = """\
func.func @both(%A: memref<128x128xf32>, %B: memref<128x128xf32>, %C: memref<128x128xf32>,
                %x: memref<64xf32>, %n: index) -> f32 attributes {llvm.emit_c_interface} {
  linalg.matmul ins(%A, %B : memref<128x128xf32>, memref<128x128xf32>)
                outs(%C : memref<128x128xf32>)
  %twice = memref.alloc() : memref<64xf32>
  affine.parallel (%i) = (0) to (64) {
    %s = affine.load %x[%i] : memref<64xf32>
    %t = arith.addf %s, %s : f32
    affine.store %t, %twice[%i] : memref<64xf32>
  }
  %r = memref.load %twice[%n] : memref<64xf32>
  memref.dealloc %twice : memref<64xf32>
  return %r : f32
}
"""
_ADDITION = 8  # the line of arith.addf
_TRACE = [
    {"name": "both", "cat": "call", "ph": "X", "ts": 10, "dur": 90, "pid": 1, "tid": 1},
    {"name": "both_kernel", "cat": "launch", "ph": "X", "ts": 20, "dur": 30, "pid": 1, "tid": 1},
]
_SECONDS = 20.0


class Browser:
    """A page in chromium, of a width in pixels."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self.width = 0

    def open(self, page: Path, width: int, address: str = "", *, dark: bool = False) -> None:
        """Opens a page, and waits until it is there."""
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [theme]})
        self.driver.get("about:blank")
        for log in ("browser", "performance"):
            self.driver.get_log(log)
        self.driver.get(f"{page.as_uri()}{address}")
        self.wait("'ready' in document.documentElement.dataset")

    def run(self, script: str) -> Any:
        return self.driver.execute_script(f"return {script}")

    def wait(self, condition: str) -> None:
        end = time.monotonic() + _SECONDS
        while not self.run(condition):
            assert time.monotonic() < end, f"never: {condition}\n{self.driver.get_log('browser')}"
            time.sleep(0.02)

    def click(self, selector: str) -> None:
        self.driver.find_element("css selector", selector).click()

    def type(self, *keys: str) -> None:
        self.driver.switch_to.active_element.send_keys(*keys)

    def lit(self, column: int) -> list[str]:
        """The lines of a column that are lit."""
        script = f"page.columns[{column}].lit.map((line) => textLines[line - 1])"
        self.driver.execute_async_script(
            "const done = arguments[0];"
            f"textOf(page.columns[{column}].index).then((text) => {{"
            "window.textLines = text.lines; done(); });"
        )
        return [str(line) for line in self.run(script)]

    def check_quiet(self) -> None:
        """The page has said nothing on the console, and has asked for nothing."""
        assert self.driver.get_log("browser") == []
        messages = [
            json.loads(row["message"])["message"] for row in self.driver.get_log("performance")
        ]
        asked = {
            message["params"]["request"]["url"].partition("#")[0]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        }
        assert {url.partition(":")[0] for url in asked} <= {"file", "data"}
        assert sum(url.startswith("file:") for url in asked) <= 1


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    programs = [shutil.which(name) for name in ("chromium", "chromedriver")]
    if None in programs:
        pytest.skip("there is no chromium with a chromedriver (Debian: chromium, chromium-driver)")
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = str(programs[0])
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options=options, service=Service(programs[1]))
    yield Browser(driver)
    driver.quit()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explore")
    (folder / "both.mlir").write_text(_MODULE)
    (folder / "trace.json").write_text(json.dumps(_TRACE))
    words = [*("--chip", "sm_80"), "--run", str(folder / "trace.json")]
    place = folder / "both.html"
    assert run(["explore", str(folder / "both.mlir"), "-o", str(place), *words]) == 0
    return place


def test_a_line_lights_up_what_came_of_it(browser: Browser, page: Path) -> None:
    """A line of the input is linked with those of all stages to PTX, and these with it; the address
    is a link to it."""
    browser.open(page, 1280)
    stages = "facts.texts.map((text) => text.stage)"
    assert {
        "input",
        "mlir",
        "device-mlir",
        "device-ll",
        "ptx",
        "cpu-mlir",
        "host-mlir",
        "host-ll",
    } <= set(browser.run(stages))
    final = "(stage) => findText({stage, is_final: true, unit: 'both_kernels'})"
    ptx, llvm = (browser.run(f"({final})('{stage}')") for stage in ("ptx", "device-ll"))
    outlined = browser.run("findText({stage: 'mlir', is_final: true})")
    cpu = browser.run("findText({stage: 'cpu-mlir', is_final: true})")
    address = f"#columns=0,{outlined},{ptx},{llvm},{cpu}&line=0:{_ADDITION}"
    browser.open(page, 1280, address)
    browser.wait("page.columns.length === 5 && page.columns[4].lit.length > 0")
    assert browser.lit(0) == ["    %t = arith.addf %s, %s : f32"]
    for column, operation in enumerate(("arith.addf", "add.", "fadd", "llvm.fadd"), 1):
        assert any(operation in line for line in browser.lit(column)), operation
        assert len(browser.lit(column)) <= 4
    # Back, from the addition in PTX.
    line = browser.run("page.columns[2].lit.at(-1)")
    browser.run("page.columns[2].go(page.columns[2].lit.at(-1))")
    browser.wait(f"page.chosen.index === {ptx} && page.columns[0].lit.length > 0")
    assert browser.lit(0) == ["    %t = arith.addf %s, %s : f32"]
    assert f"line={ptx}:{line}" in browser.driver.current_url
    status = browser.driver.find_element("id", "status").text
    assert status == (f"ptx sm_80 line {line} comes from {status.partition('comes from ')[2]}")
    assert status.endswith(f"from both.mlir line {_ADDITION}.")
    browser.check_quiet()


def test_the_page_tells_kernel_tile_and_chip_and_where_buffers_are(
    browser: Browser, page: Path
) -> None:
    browser.open(page, 1280)
    number = browser.run("facts.kernels.findIndex((one) => one.name.startsWith('matmul_f32_tt_'))")
    browser.click(f"#kernels [data-kernel='{number}']")
    browser.wait("!document.getElementById('view-kernel').hidden")
    text = browser.driver.find_element("id", "view-kernel").text
    kernel = browser.run(f"facts.kernels[{number}].name")
    facts = browser.run(f"facts.kernels[{number}].on_chips[0].needs")
    for words in (kernel, "line 3", "sm_80", "128 × 128 × 128", "Rivals on sm_80", "taken"):
        assert words in text
    assert str(facts["registers"]) in text
    browser.click("nav [data-view=memory]")
    browser.wait("!document.getElementById('view-memory').hidden")
    text = browser.driver.find_element("id", "view-memory").text
    assert "host memory with a mirror on the device" in text
    assert "where the caller has it on the other side, it is copied before the call" in text
    browser.click("nav [data-view=run]")
    browser.wait("!document.getElementById('view-run').hidden")
    assert "both_kernel 1 30 µs" in browser.driver.find_element("id", "view-run").text
    browser.check_quiet()


def test_keys_search_and_compare(browser: Browser, page: Path) -> None:
    browser.open(page, 1280)
    browser.driver.find_element("tag name", "body").send_keys("/")
    browser.type("arith.addf %s", "\ue007")
    browser.wait("!document.getElementById('view-search').hidden")
    browser.type("\ue007")  # the first result has the focus
    browser.wait(f"page.view === 'code' && page.chosen?.line === {_ADDITION}")
    browser.type("]")
    browser.wait("page.columns[0].index === 1")
    last = browser.run("findText({stage: 'mlir', is_final: true})")
    browser.run(f"page.columns[1].changed(page.columns[1], {last})")
    browser.type("d")
    browser.wait("document.querySelectorAll('#compared .cm-changedLine').length > 0")
    assert "gpu.launch_func" in browser.driver.find_element("id", "compared").text
    before = browser.run("getComputedStyle(document.body).backgroundColor")
    browser.click("#theme")
    assert browser.run("getComputedStyle(document.body).backgroundColor") != before
    browser.click("#theme")
    browser.check_quiet()


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_is_cut_off_and_all_can_be_read(
    browser: Browser, page: Path, width: int, dark: bool
) -> None:
    """No view is wider than the window; fields have names; text has the contrast of WCAG's AA."""
    browser.run("localStorage.clear()") if browser.driver.current_url.startswith("file") else None
    browser.open(page, width, dark=dark)
    for view in ("code", "kernel", "memory", "build", "run"):
        browser.run(f"page.show('{view}')")
        assert browser.run("document.documentElement.scrollWidth") <= width, view
        wide = "[...document.querySelectorAll('.wide')].filter((one) => one.checkVisibility()"
        wide += " && one.scrollWidth > one.clientWidth).length"
        assert width > 400 or browser.run(wide) == 0, view
        nameless = browser.run(
            "[...document.querySelectorAll('button, input, select')].filter((one) =>"
            " !one.textContent.trim() && !one.ariaLabel && !one.labels?.length).length"
        )
        assert nameless == 0, view
        assert browser.run(_CONTRAST) >= 4.5, view
    browser.check_quiet()


# The least contrast of what is shown with what is behind it.
_CONTRAST = """(() => {
  const parts = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = (color) => {
    const [r, g, b] = parts(color).slice(0, 3).map((one) => one / 255)
      .map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (one) => {
    for (; one; one = one.parentElement) {
      const color = getComputedStyle(one).backgroundColor;
      if ((parts(color)[3] ?? 1) > 0) return color;
    }
    return "rgb(255, 255, 255)";
  };
  const texts = [...document.querySelectorAll("header *, aside *, main *")].filter((one) =>
    one.checkVisibility() &&
    [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim()));
  return Math.min(...texts.map((one) => {
    const [a, b] = [light(getComputedStyle(one).color), light(behind(one))].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  }));
})()"""


def test_a_thousand_kernels_open_in_two_seconds(browser: Browser, tmp_path: Path) -> None:
    kernels = tuple(
        KernelFacts("all", f"kernel_{i}", "", 30 * i + 1, (_LAUNCH,), ("sm_80",), (), None, None)
        for i in range(1000)
    )
    texts = tuple(
        Text(
            f"pass-{number}",
            *("mlir" if number else "input", "mlir"),
            tuple(
                Line(
                    f"  %{i} = arith.addf %{i}, %{i % 7 + number} : f32",
                    ((0, i + 1),) if number else (),
                )
                for i in range(30_000)
            ),
        )
        for number in range(20)
    )
    exploration = Exploration(
        title="many.mlir",
        aotc="0",
        target="",
        chips="",
        tools=(),
        stages=(),
        texts=texts,
        kernels=kernels,
        matmuls=(),
        images=(),
        buffers=(),
        copies=(),
        decisions=(),
        notes=(),
        run=None,
    )
    place = tmp_path / "many.html"
    place.write_text(page_of(exploration))
    # Each text has 1.2 MB.
    assert place.stat().st_size < 8_000_000
    browser.open(place, 1280)
    assert browser.run("performance.now()") < 2000
    assert browser.run("document.querySelectorAll('#kernels button').length") == 1000
    # Of 30,000 lines, those to be seen are in the page.
    assert browser.run("document.querySelectorAll('.cm-line').length") < 1000


_LAUNCH = Launch(1, "f", (8, 1, 1), (128, 1, 1), (), 0)


def test_pages_on_standard_output_and_of_modules_without_kernels(
    aotc: Callable[..., Any], mlir_file: Callable[..., Path], tmp_path: Path
) -> None:
    """A module needs no kernel; what is refused leaves no page."""
    module = mlir_file(
        "func.func @f(%x: memref<4xf32>) attributes {llvm.emit_c_interface} { return }", "f.mlir"
    )
    said = aotc("explore", module, "-o", "-", "--chip", "sm_80")
    assert said.code == 0
    assert said.stdout.startswith("<!doctype html>")
    assert "<title>f.mlir</title>" in said.stdout
    place = tmp_path / "page.html"
    said = aotc("explore", module, "-o", place, "--run", tmp_path / "none.json")
    assert said.code == 2
    assert f"Cannot read '{tmp_path / 'none.json'}'" in said.stderr
    assert not place.exists()
    said = aotc("explore", module, "-o", module)
    assert said.code == 2
    assert f"The page '{module}' would overwrite the input" in said.stderr
    assert module.read_text().startswith("func.func")


def test_a_module_of_kernels_alone(
    aotc: Callable[..., Any], mlir_file: Callable[..., Path], tmp_path: Path
) -> None:
    """It has no host code; its manifest tells of the kernels, and a library is refused."""
    module = mlir_file(
        """\
gpu.module @kernels {
  gpu.func @scale(%x: memref<64xf32>, %a: f32) kernel {
    %i = gpu.thread_id x
    %v = memref.load %x[%i] : memref<64xf32>
    %w = arith.mulf %v, %a : f32
    memref.store %w, %x[%i] : memref<64xf32>
    gpu.return
  }
}
""",
        "kernels.mlir",
    )
    said = aotc("explore", module, "-o", "-", "--chip", "sm_80")
    assert said.code == 0
    assert "<title>kernels.mlir</title>" in said.stdout
    place = tmp_path / "kernels.json"
    assert aotc("build", module, "--emit", "manifest", "--chip", "sm_80", "-o", place).code == 0
    manifest = json.loads(place.read_text())
    assert manifest["entries"] == []
    (kernel,) = manifest["kernels"]
    assert (kernel["name"], kernel["built_for"]) == ("scale", ["sm_80"])
    assert kernel["resources"][0]["registers"] > 0
    refused = aotc("build", module, "--emit", "header", "-o", tmp_path / "kernels.h")
    assert (refused.code, refused.stderr.count("Nothing to export")) == (2, 1)

"""A report as text: sections, and tables with columns of the necessary width."""

from __future__ import annotations

from collections.abc import Sequence

from aotc.images.image import DeviceKernel, Image
from aotc.images.view import printable
from aotc.inspect.report import EntryReport, Host, ModuleReport, Report
from aotc.manifest import built_for_text

UNKNOWN = "unknown"
_MOST_MEMBERS = 6
_LONGEST_NAME = 60
_COLUMNS = (
    "image",
    "kernel",
    "registers",
    "shared",
    "stack",
    "spills",
    "max threads",
    "code",
)


def to_text(report: Report) -> str:
    """The lines to print; control characters in a file's names are escaped."""
    lines = [f"{report.file}: {_title(report)}, {_size(report.bytes)}"]
    if report.host is not None:
        lines += _host(report.host, report.format)
    for module in report.modules:
        lines += ["", *_module(module)]
    if report.host is not None and not report.modules:
        lines += ["", "It was not built by aotc, or its note is gone: there is no list of entries."]
    lines += ["", *_images(report.images)]
    return "\n".join(printable(line) for line in lines)


def kind_words(kind: str) -> str:
    """The readable name of a kind of image, or of the format of a file."""
    return "PTX" if kind == "ptx" else kind


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of aligned columns; all but the first two are numbers, aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  "
        + "  ".join(
            cell.ljust(width) if i < 2 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _title(report: Report) -> str:
    form = kind_words(report.format)
    return f"{form} for {report.host.architecture}" if report.host is not None else form


def _host(host: Host, form: str) -> list[str]:
    needs = ", ".join(host.needed)
    if form in ("executable", "shared library"):
        needs = needs or "no library"
    if host.glibc is not None:
        needs += f"; glibc {host.glibc} or newer"
    members = ", ".join(host.members[:_MOST_MEMBERS])
    if len(host.members) > _MOST_MEMBERS:
        members += f" and {len(host.members) - _MOST_MEMBERS} more"
    pairs = [
        ("needs", needs),
        ("soname", host.soname or ""),
        ("build id", host.build_id or ""),
        ("members", members),
        ("made by", ", ".join(host.made_by)),
    ]
    return _pairs(pairs)


def _pairs(pairs: Sequence[tuple[str, str]]) -> list[str]:
    return [f"  {name:<10}{value}" for name, value in pairs if value]


def _module(module: ModuleReport) -> list[str]:
    tools = ", ".join(f"{name} {version}" for name, version in module.tools.items())
    lines = [
        f"module {module.name}",
        *_pairs(
            [
                ("built by", f"aotc {module.aotc}, -O{module.optimization}"),
                ("for", module.target),
                ("tools", tools),
                ("weights", module.weights or ""),
            ]
        ),
    ]
    for entry in module.entries:
        lines += [f"  entry {entry.signature}", *_functions(entry)]
    lines += [f"  weight {one.name}: {one.type}" for one in module.replaceable]
    for kernel in module.kernels:
        places = built_for_text(kernel.built_for) or "no GPU"
        cpu = "and the CPU" if kernel.has_cpu_form else f"not the CPU: {kernel.why_no_cpu_form}"
        lines.append(f"  kernel {kernel.name} for {places}, {cpu}")
    return lines


def _functions(entry: EntryReport) -> list[str]:
    exported = [function for function in entry.functions if function.is_exported]
    if not exported:
        # An executable's entries are called by its harness.
        call = next((f for f in entry.functions if f.does == "call"), None)
        return [f"    {call.prototype}  (not exported)"] if call and call.prototype else []
    return [f"    {function.prototype or function.symbol}" for function in exported]


def _images(images: Sequence[Image]) -> list[str]:
    if not images:
        return ["There is no device code in it."]
    rows: list[tuple[str, ...]] = [_COLUMNS]
    makers = ", ".join(dict.fromkeys(image.made_by for image in images if image.made_by))
    lines = [
        f"{len(images)} image{'s' if len(images) > 1 else ''} of device code"
        + (f", made by {makers}" if makers else "")
    ]
    problems = []
    blanks = [""] * (len(_COLUMNS) - 2)
    for image in images:
        name = _image_name(image)
        if image.problem is not None:
            rows.append((name, "damaged", *blanks))
            problems.append(f"  {image.problem}")
        for kernel in image.kernels:
            rows.append((name, _shortened(kernel.name), *_kernel(kernel, image)))
            name = ""
        if not image.kernels and image.problem is None:
            rows.append((name, "no kernel", *blanks))
    return [*lines, *table(rows), *problems]


def _image_name(image: Image) -> str:
    version = f" {image.ptx_version}" if image.ptx_version else ""
    stored = f", {image.compression}" if image.compression else ""
    return f"{image.chip} {kind_words(image.kind)}{version}, {_size(image.bytes)}{stored}"


def _kernel(kernel: DeviceKernel, image: Image) -> tuple[str, ...]:
    threads = _threads(kernel)
    if image.kind == "ptx":
        # Not known before the driver compiles the PTX.
        return ("", "", "", "", threads, "")
    spills = UNKNOWN
    if kernel.spill_stores is not None and kernel.spill_loads is not None:
        spills = f"{kernel.spill_stores}+{kernel.spill_loads}"
        spills = "0" if spills == "0+0" else spills
    return (
        _number(kernel.registers),
        _number(kernel.shared_bytes),
        _number(kernel.stack_bytes),
        spills,
        threads,
        _number(kernel.code_bytes),
    )


def _shortened(name: str) -> str:
    """Shortens a C++ name of thousands of characters to its two ends. JSON has the whole name."""
    half = _LONGEST_NAME // 2
    return name if len(name) <= _LONGEST_NAME else f"{name[:half]}…{name[-half:]}"


def _threads(kernel: DeviceKernel) -> str:
    if kernel.required_block is not None:
        return "x".join(map(str, kernel.required_block))
    return "any" if kernel.max_threads is None else str(kernel.max_threads)


def _number(value: int | None) -> str:
    return UNKNOWN if value is None else str(value)


def _size(size: int) -> str:
    return f"{size} bytes" if size < 10_000 else f"{size / 1024:.1f} KiB"

"""`nvgpu.mma.sync`, `nvgpu.mma.sp.sync`, `nvgpu.ldmatrix` → loads, products and stores of lanes.

The layout of the operands in the lanes' registers is visible to programs: see
`fragments.MmaFragment`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from aotc.mlir import ir
from aotc.ops import (
    compare,
    constant,
    constant_from,
    constant_index,
    create,
    create_if,
    extract,
    integer,
    select,
    unary,
)
from aotc.targets.cpu import build
from aotc.targets.cpu.expand.addresses import element_address, to_i64
from aotc.targets.cpu.expand.fragments import (
    GROUP_SIZE,
    LDMATRIX,
    LDMATRIX_ROW_BYTES,
    LDMATRIX_ROWS,
    LDMATRIX_TRANSPOSED,
    MmaFragment,
    mma_fragments,
)
from aotc.targets.cpu.expand.matmul import (
    Multiplicand,
    accumulator_type,
    add_saturating,
    convert,
    multiply,
    place_multiplicands,
    prepare,
    zeros,
)
from aotc.targets.cpu.expand.matrix_types import mma_shape
from aotc.targets.cpu.expand.slots import Slots
from aotc.targets.cpu.sizes import size_of
from aotc.targets.cpu.synchronize import WARP_SLOTS, warp_sync

if TYPE_CHECKING:
    from aotc.targets.cpu.thread_function import Ids

_ULT = 6
# For sparse products: row tiles of A, the bits of a word of metadata, and the bits of a chunk.
_ROW_TILES = 2
_WORD_BITS = 32
_CHUNK_BITS = 4


class _Lane:
    """The position of a lane in a fragment: the lane is 4 * group + member."""

    def __init__(self, ids: Ids) -> None:
        lane = to_i64(ids.lane)
        self.group = build.divide(lane, build.number(GROUP_SIZE))
        self.member = build.remainder(lane, build.number(GROUP_SIZE))

    def addresses(self, layout: MmaFragment, matrix: Multiplicand) -> list[list[Any]]:
        """The addresses of the elements of each of this lane's registers, in a matrix in memory."""
        start = build.add(
            build.multiply(self.group, build.number(matrix.offset(layout.group_step))),
            build.multiply(self.member, build.number(matrix.offset(layout.member_step))),
        )
        first = build.at(matrix.address, start)
        return [
            [build.at(first, matrix.offset(place)) for place in register]
            for register in layout.offsets
        ]


def _join(registers: list[Any], type_: Any) -> Any:
    """The fragment of type `type_` that consists of the registers."""
    fragment = zeros(type_)
    for number, register in enumerate(registers):
        fragment = create(
            "vector.insert",
            [register, fragment],
            [type_],
            {"static_position": ir.DenseI64ArrayAttr.get([number])},
        ).result
    return fragment


def _registers(vector: Any) -> list[Any]:
    return [extract(vector, number) for number in range(vector.type.shape[0])]


def _mma_sync(operation: Any, ids: Ids) -> None:
    a_value, b_value, c_value = operation.operands
    _multiply(operation, _registers(a_value), b_value, c_value, ids)


def _multiply(operation: Any, a_registers: list[Any], b_value: Any, c_value: Any, ids: Ids) -> None:
    """Replaces an operation by the product of A and B. `a_registers` have all elements of A."""
    result = operation.results[0]
    element = b_value.type.element_type
    m, n, k = mma_shape(operation)
    a_layout, _, _ = mma_fragments(m, n, k, a_registers[0].type.shape[0])
    _, b_layout, c_layout = mma_fragments(m, n, k, b_value.type.shape[1])
    a, b = place_multiplicands(ids.slots, WARP_SLOTS, element, m, n, k)
    lane = _Lane(ids)
    # Waits for lanes that still read an earlier operand here.
    warp_sync()
    for multiplicand, layout, registers in (
        (a, a_layout, a_registers),
        (b, b_layout, _registers(b_value)),
    ):
        places = lane.addresses(layout, multiplicand)
        for register, addresses in zip(registers, places, strict=True):
            stored = prepare(register, multiplicand.element)
            _store_register(stored, addresses, is_row=layout.is_by_rows)
    warp_sync()
    # The accumulators are in the rows of the lane's group and the columns of its member.
    own_row = build.multiply(lane.group, build.number(a.offset((c_layout.group_step[0], 0))))
    first_row = build.at(a.address, own_row)
    rows = [build.at(first_row, a.offset((first[0], 0))) for first, *_ in c_layout.offsets]
    own_columns = build.multiply(lane.member, build.number(b.offset((0, c_layout.member_step[1]))))
    columns = build.at(b.address, own_columns)
    accumulators = [
        convert(register, accumulator_type(element)) for register in _registers(c_value)
    ]
    if isinstance(element, ir.IntegerType):
        # This is upstream's lowering for a GPU. Whether intermediate sums saturate is not defined.
        products = multiply(a, b, rows, columns, [zeros(total.type) for total in accumulators])
        accumulators = [add_saturating(*pair) for pair in zip(products, accumulators, strict=True)]
    else:
        accumulators = multiply(a, b, rows, columns, accumulators)
    registers = [convert(total, result.type.element_type) for total in accumulators]
    result.replace_all_uses_with(_join(registers, result.type))


def _mma_sparse_sync(operation: Any, ids: Ids) -> None:
    """Fills in the zeros of A, and multiplies like `nvgpu.mma.sync`.

    A register of A has the nonzero elements of one chunk, which has twice as many columns. The 4
    metadata bits of the chunk are in a lane of the same group: in the lower half of its word for
    the first rows, in the upper half for the rows that are 8 further down.
    """
    a_value, b_value, c_value, metadata = operation.operands
    registers = _registers(a_value)
    words = _metadata_words(operation, metadata, k_tiles=len(registers) // _ROW_TILES, ids=ids)
    shift = build.multiply(_Lane(ids).member, build.number(_CHUNK_BITS))
    dense = []
    for number, register in enumerate(registers):
        k_tile, row_tile = divmod(number, _ROW_TILES)
        place = build.add(shift, build.number(_WORD_BITS // _ROW_TILES * row_tile))
        bits = build.integer_op("lshr", words[k_tile], unary("arith.trunci", place, integer(32)))
        dense.append(_expand_chunk(register, bits))
    _multiply(operation, dense, b_value, c_value, ids)


def _metadata_words(operation: Any, metadata: Any, k_tiles: int, ids: Ids) -> list[Any]:
    """The metadata words of this lane's chunks, one for each tile along k."""
    word_type = integer(_WORD_BITS)
    selector = 0
    if "sparsitySelector" in operation.attributes:
        selector = ir.IntegerAttr(operation.attributes["sparsitySelector"]).value
    word = extract(unary("vector.bitcast", metadata, ir.VectorType.get([1], word_type)), 0)
    group = build.multiply(_Lane(ids).group, build.number(GROUP_SIZE))
    slots = Slots(ids.slots, word_type)
    warp_sync()
    slots.store(word, to_i64(ids.lane))
    warp_sync()
    first = k_tiles * selector
    return [slots.load(build.add(group, build.number(first + k_tile))) for k_tile in range(k_tiles)]


def _expand_chunk(register: Any, bits: Any) -> Any:
    """The elements of a chunk: those of `register` at the columns that `bits` give, else zeros.

    Two bits give the column of each of two elements in four. For f32 they give halves of columns;
    the upper bit is that of the element.
    """
    width = register.type.shape[0]
    columns = []
    for number in range(width):
        name_bit = 2 * number if width > 1 else 1
        column = build.integer_op("lshr", bits, constant(bits.type, name_bit))
        columns.append(build.integer_op("and", column, constant(bits.type, 2 * width - 1)))
    element = register.type.element_type
    elements = []
    for place in range(2 * width):
        value = constant_from(ir.FloatAttr.get(element, 0.0))
        for number, column in enumerate(columns):
            is_here = build.compare(build.EQ, column, constant(bits.type, place))
            value = select(is_here, extract(register, number), value)
        elements.append(value)
    type_ = ir.VectorType.get([2 * width], element)
    return create("vector.from_elements", elements, [type_]).result


def _store_register(register: Any, addresses: list[Any], *, is_row: bool) -> None:
    """Stores the elements of a register, in one access if their addresses are contiguous."""
    size = size_of(register.type.element_type).bytes
    if is_row:
        build.store(register, addresses[0], alignment=len(addresses) * size)
        return
    for number, address in enumerate(addresses):
        build.store(extract(register, number), address, alignment=size)


def _ldmatrix(operation: Any, ids: Ids) -> None:
    memref, *indices = operation.operands
    result = operation.results[0]
    tiles, width = result.type.shape
    lane = _Lane(ids)
    byte_type = integer(8)

    def copy_row() -> None:
        # The alignment of a wrong program may be lower; a GPU traps then, the CPU need not.
        row = build.load(
            element_address(memref, indices),
            ir.VectorType.get([LDMATRIX_ROW_BYTES], byte_type),
            alignment=1,
        )
        place = build.multiply(to_i64(ids.lane), build.number(LDMATRIX_ROW_BYTES))
        build.store(row, build.at(ids.slots, place), alignment=LDMATRIX_ROW_BYTES)

    # Waits for lanes that still read an earlier operand here.
    warp_sync()
    # Lane i has the address of row i % 8 of tile i / 8. Other lanes' addresses are ignored.
    create_if(compare(_ULT, ids.lane, constant_index(LDMATRIX_ROWS * tiles)), copy_row)
    warp_sync()
    register_type = ir.VectorType.get([width], result.type.element_type)
    is_transposed = bool(ir.BoolAttr(operation.attributes["transpose"]).value)
    layout = LDMATRIX_TRANSPOSED if is_transposed else LDMATRIX
    registers = []
    for number in range(tiles):
        start = build.at(ids.slots, number * LDMATRIX_ROWS * LDMATRIX_ROW_BYTES)
        tile = Multiplicand(
            start, layout.rows, layout.columns, integer(16 if is_transposed else 32)
        )
        (addresses,) = lane.addresses(layout, tile)
        registers.append(_load_register(register_type, addresses))
    result.replace_all_uses_with(_join(registers, result.type))


def _load_register(type_: Any, addresses: list[Any]) -> Any:
    """Loads 32 bits at one address, or 16 bits at each of two."""
    if len(addresses) == 1:
        return build.load(addresses[0], type_, alignment=4)
    elements = [build.load(address, type_.element_type, alignment=2) for address in addresses]
    return create("vector.from_elements", elements, [type_]).result


MMA: dict[str, Callable[[Any, Ids], None]] = {
    "nvgpu.mma.sync": _mma_sync,
    "nvgpu.mma.sp.sync": _mma_sparse_sync,
    "nvgpu.ldmatrix": _ldmatrix,
}

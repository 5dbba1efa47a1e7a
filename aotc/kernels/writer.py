"""Index arithmetic, loops, branches and accesses over `Emitter`, as SIMT kernels are written in."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aotc.kernels.indices import Index, IndexWriter
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Emitter, convert

_SPACE = "#gpu.address_space<workgroup>"
_BYTES = f"memref<?xi8, {_SPACE}>"


class Writer(IndexWriter):
    """What the module says. Numbers are unsigned."""

    def go_on(self, other: Emitter) -> None:
        """Takes the lines of one that has gone on with the names of this one."""
        self.lines += other.lines
        self._names = other._names

    def minimum(self, x: Index, y: Index) -> Index:
        if isinstance(x, int) and isinstance(y, int):
            return min(x, y)
        return self._binary("minui", x, y)

    def maximum(self, x: Index, y: Index) -> Index:
        """Of signed numbers."""
        if isinstance(x, int) and isinstance(y, int):
            return max(x, y)
        return self._binary("maxsi", x, y)

    def divide_up(self, x: Index, y: Index) -> Index:
        return self.divide(self.add(x, self.subtract(y, 1)), y)

    def less(self, x: Index, y: Index) -> str:
        return self.value(f"arith.cmpi ult, {self.index(x)}, {self.index(y)} : index")

    def equal(self, x: Index, y: Index) -> str:
        return self.value(f"arith.cmpi eq, {self.index(x)}, {self.index(y)} : index")

    def both(self, x: str | None, y: str | None) -> str | None:
        """Whether both hold; None is what is known to hold."""
        if x is None or y is None:
            return y if x is None else x
        return self.value(f"arith.andi {x}, {y} : i1")

    def select(self, condition: str | None, yes: Index, no: Index) -> Index:
        if condition is None or yes == no:
            return yes
        return self.value(f"arith.select {condition}, {self.index(yes)}, {self.index(no)} : index")

    def unravel(self, number: Index, *counts: Index) -> list[Index]:
        """The digits of `number`, the last one fastest; `counts` are those of all but the first."""
        digits: list[Index] = []
        for count in reversed(counts):
            digits.insert(0, self.remainder(number, count))
            number = self.divide(number, count)
        return [number, *digits]

    def zero(self, type_: str) -> str:
        return self.constant("0" if type_.startswith("i") else "0.0", type_)

    def multiply_add(self, x: str, y: str, total: str, type_: str) -> str:
        """A product and a sum, which may be one operation, rounded once."""
        if type_.startswith("i"):
            product = self.value(f"arith.muli {x}, {y} : {type_}")
        else:
            product = self.value(f"arith.mulf {x}, {y} fastmath<contract> : {type_}")
        return self.sum(product, total, type_)

    def sum(self, x: str, y: str, type_: str) -> str:
        if type_.startswith("i"):
            return self.value(f"arith.addi {x}, {y} : {type_}")
        return self.value(f"arith.addf {x}, {y} fastmath<contract> : {type_}")

    # --- Regions -------------------------------------------------------------------------------

    def loop(
        self,
        start: Index,
        stop: Index,
        step: Index,
        carried: Sequence[str],
        types: Sequence[str],
        body: Callable[[str, list[str]], Sequence[str]],
    ) -> list[str]:
        """`body` is given the loop's variable and what is carried, and returns what is next. The
        result is what the last turn has returned."""
        bounds = [self.index(bound) for bound in (start, stop, step)]
        variable, names = self.name(), [self.name() for _ in carried]
        head = f"scf.for {variable} = {bounds[0]} to {bounds[1]} step {bounds[2]}"
        if not carried:
            self.open(f"{head} {{")
            body(variable, [])
            self.close()
            return []
        pairs = ", ".join(f"{name} = {value}" for name, value in zip(names, carried, strict=True))
        result = self.name()
        self.open(f"{result}:{len(names)} = {head} iter_args({pairs}) -> ({', '.join(types)}) {{")
        self.line(f"scf.yield {', '.join(body(variable, names))} : {', '.join(types)}")
        self.close()
        return [f"{result}#{number}" for number in range(len(names))]

    def where(
        self,
        condition: str | None,
        body: Callable[[], None],
        otherwise: Callable[[], None] | None = None,
    ) -> None:
        if condition is None:
            body()
            return
        self.open(f"scf.if {condition} {{")
        body()
        if otherwise:
            self.otherwise()
            otherwise()
        self.close()

    def choose(
        self,
        condition: str | None,
        types: Sequence[str],
        yes: Callable[[], Sequence[str]],
        no: Callable[[], Sequence[str]],
    ) -> list[str]:
        """The values of one of the two."""
        if condition is None:
            return list(yes())
        result = self.name()
        self.open(f"{result}:{len(types)} = scf.if {condition} -> ({', '.join(types)}) {{")
        self.line(f"scf.yield {', '.join(yes())} : {', '.join(types)}")
        self.otherwise()
        self.line(f"scf.yield {', '.join(no())} : {', '.join(types)}")
        self.close()
        return [f"{result}#{number}" for number in range(len(types))]

    def launch(
        self,
        blocks: Index,
        threads: int,
        shared_bytes: int,
        body: Callable[[], None],
        first: Sequence[str] = (),
    ) -> None:
        """A kernel whose blocks and threads, `%block` and `%thread`, count in x. `body` finds its
        shared memory in `%shared`, if there is any, at a multiple of 16 bytes. `first`: lines in
        front of everything."""
        if blocks == 0:
            return
        is_known = isinstance(blocks, int)
        # A grid has a block at least; where there should be none, that one does nothing.
        grid = self.index(blocks) if is_known else self._binary("maxui", blocks, 1)
        one, size = self.constant(1), self.index(threads)
        dynamic = ""
        if shared_bytes:
            dynamic = f" dynamic_shared_memory_size {self.constant(shared_bytes, 'i32')}"
        y, z, *sizes = (self.name() for _ in range(10))
        self.open(
            f"gpu.launch blocks(%block, {y}, {z}) "
            f"in ({sizes[0]} = {grid}, {sizes[1]} = {one}, {sizes[2]} = {one}) "
            f"threads(%thread, {sizes[3]}, {sizes[4]}) "
            f"in ({sizes[5]} = {size}, {sizes[6]} = {one}, {sizes[7]} = {one}){dynamic} {{"
        )
        for line in first:
            self.line(line)
        if shared_bytes:
            # Not workgroup(...): such a buffer is only aligned as its elements are.
            self.line(f"%shared = gpu.dynamic_shared_memory : {_BYTES}")
        self.where(None if is_known else self.less("%block", blocks), body)
        self.line("gpu.terminator")
        self.close()

    def shuffle(self, value: str, offset: int, type_: str) -> str:
        """The value of the lane whose number differs in the bit `offset`."""
        distance, width = self.constant(offset, "i32"), self.constant(32, "i32")
        name, valid = self.name(), self.name()
        self.line(f"{name}, {valid} = gpu.shuffle xor {value}, {distance}, {width} : {type_}")
        return name

    def barrier(self) -> None:
        self.line("gpu.barrier")

    # --- Memory --------------------------------------------------------------------------------

    def dim(self, name: str, type_: str, axis: int) -> str:
        return self.value(f"memref.dim {name}, {self.constant(axis)} : {type_}")

    def shared(self, offset: int, shape: Sequence[int], element: str) -> Buffer:
        """A buffer in the kernel's shared memory, `offset` bytes behind its start."""
        type_ = f"memref<{'x'.join(map(str, shape))}x{element}, {_SPACE}>"
        name = self.value(f"memref.view %shared[{self.constant(offset)}][] : {_BYTES} to {type_}")
        return Buffer(name, type_, element)

    def load(self, buffer: Buffer, at: Sequence[Index], count: int = 1) -> list[str]:
        """`count` elements of a row in one access, whose address is a multiple of its size."""
        place = self._place(buffer, at)
        if count == 1:
            return [self.value(f"memref.load {place} : {buffer.type}")]
        vector = f"vector<{count}x{buffer.element}>"
        loaded = self.value(
            f"vector.load {place} {_aligned(buffer, count)} : {buffer.type}, {vector}"
        )
        return [
            self.value(f"vector.extract {loaded}[{number}] : {buffer.element} from {vector}")
            for number in range(count)
        ]

    def store(self, buffer: Buffer, at: Sequence[Index], values: Sequence[str]) -> None:
        """Likewise."""
        place, count = self._place(buffer, at), len(values)
        if count == 1:
            self.line(f"memref.store {values[0]}, {place} : {buffer.type}")
            return
        vector = f"vector<{count}x{buffer.element}>"
        made = self.value(f"vector.from_elements {', '.join(values)} : {vector}")
        self.line(
            f"vector.store {made}, {place} {_aligned(buffer, count)} : {buffer.type}, {vector}"
        )

    def copy_async(
        self,
        source: Buffer,
        at: Sequence[Index],
        to: Buffer,
        place: Sequence[Index],
        count: int,
        there: Index,
    ) -> str:
        """Begins to copy `count` elements to shared memory. Only `there` of them are read, the
        others become 0."""
        # 16 bytes at once may pass by the L1 cache, which has no use for them.
        bypass = " {bypassL1}" if count * ELEMENT_BYTES[source.element] == 16 else ""
        return self.value(
            f"nvgpu.device_async_copy {self._place(source, at)}, {self._place(to, place)}, "
            f"{count}, {self.index(there)}{bypass} : {source.type} to {to.type}"
        )

    def end_copies(self) -> str:
        """Makes a group of those that were begun since the last one."""
        group = '"nvgpu.device_async_create_group"() : () -> !nvgpu.device.async.token'
        return self.value(group)

    def wait_copies(self, group: str, pending: int) -> None:
        """Waits until of this thread's groups at most `pending`, the last ones, are under way."""
        self.line(f"nvgpu.device_async_wait {group} {{numGroups = {pending} : i32}}")

    def _place(self, buffer: Buffer, at: Sequence[Index]) -> str:
        return f"{buffer.name}[{', '.join(self.index(value) for value in at)}]"


class Buffer:
    """A memref: its name, its type, and the type of its elements."""

    def __init__(self, name: str, type_: str, element: str) -> None:
        self.name, self.type, self.element = name, type_, element


def _aligned(buffer: Buffer, count: int) -> str:
    return f"{{alignment = {count * ELEMENT_BYTES[buffer.element]} : i64}}"


def converted(writer: Writer, values: Sequence[str], source: str, target: str) -> list[str]:
    return [convert(writer, value, source, target) for value in values]

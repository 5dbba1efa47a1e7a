"""Lowers StableHLO's operations with regions to scf, because the pass to linalg does not lower
them.

The input is the result of that pass: the operations in the regions are lowered, and
`stablehlo.return` is the terminator. https://openxla.org/stablehlo/spec#while, #if, #case
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from aotc import ops
from aotc.frontends.helpers import declare_capability
from aotc.frontends.stablehlo.scatter import lower_scatter
from aotc.frontends.stablehlo.select_and_scatter import lower_select_and_scatter
from aotc.frontends.stablehlo.sort import lower_sort


def lower_regions(ir: Any, module: Any) -> None:
    """Changes the module in place. `ir` is the package of bindings that the module belongs to."""
    lowering = _Lowering(ir)
    with module.context:
        # Innermost operations first: the walk is in pre-order.
        for operation in reversed(ops.walk(module.operation)):
            lower = lowering.by_name.get(operation.name)
            if lower is not None:
                with operation.location, ir.InsertionPoint(operation):
                    lower(operation)
                ops.erase(operation)
        declare_capability(ir, module)


class _Lowering:
    def __init__(self, ir: Any) -> None:
        self._ir = ir
        self.by_name: dict[str, Callable[[Any], None]] = {
            "stablehlo.while": self._while,
            "stablehlo.if": self._if,
            "stablehlo.case": self._case,
            "stablehlo.select_and_scatter": functools.partial(lower_select_and_scatter, ir),
            "stablehlo.scatter": functools.partial(lower_scatter, ir),
            "stablehlo.sort": functools.partial(lower_sort, ir),
        }

    def _create(
        self, name: str, operands: Any = (), results: Any = (), regions: int = 0, **attributes: Any
    ) -> Any:
        return self._ir.Operation.create(
            name,
            results=list(results),
            operands=list(operands),
            attributes=attributes,
            regions=regions,
        )

    def _element(self, tensor: Any) -> Any:
        """The element of a tensor of rank 0."""
        element = self._ir.RankedTensorType(tensor.type).element_type
        return self._create("tensor.extract", [tensor], [element]).result

    def _move_block(self, source: Any, target: Any, end: Callable[[list[Any]], None]) -> None:
        """Moves the block of a region. `end` builds the new terminator from the operands of the old
        one."""
        block = source.blocks[0]
        block.append_to(target)
        returned = ops.terminator(block)
        with returned.location, self._ir.InsertionPoint(returned):
            end(list(returned.operands))
        ops.erase(returned)

    def _yield(self, values: list[Any]) -> None:
        self._create("scf.yield", values)

    def _while(self, operation: Any) -> None:
        results = [result.type for result in operation.results]
        loop = self._create("scf.while", operation.operands, results, regions=2)
        arguments: list[Any] = []

        def go_on(values: list[Any]) -> None:
            self._create("scf.condition", [self._element(values[0]), *arguments])

        arguments += operation.regions[0].blocks[0].arguments
        self._move_block(operation.regions[0], loop.regions[0], go_on)
        self._move_block(operation.regions[1], loop.regions[1], self._yield)
        self._replace(operation, loop)

    def _if(self, operation: Any) -> None:
        results = [result.type for result in operation.results]
        condition = self._element(operation.operands[0])
        branch = self._create("scf.if", [condition], results, regions=2)
        for old, new in zip(operation.regions, branch.regions, strict=True):
            self._move_block(old, new, self._yield)
        self._replace(operation, branch)

    def _case(self, operation: Any) -> None:
        """An index that is out of range selects the last branch."""
        ir = self._ir
        results = [result.type for result in operation.results]
        number = self._element(operation.operands[0])
        index = self._create("arith.index_cast", [number], [ir.IndexType.get()]).result
        regions = list(operation.regions)
        cases = ir.DenseI64ArrayAttr.get(range(len(regions) - 1))
        switch = self._create(
            "scf.index_switch", [index], results, regions=len(regions), cases=cases
        )
        for old, new in zip([regions[-1], *regions[:-1]], switch.regions, strict=True):
            self._move_block(old, new, self._yield)
        self._replace(operation, switch)

    def _replace(self, operation: Any, by: Any) -> None:
        for old, new in zip(operation.results, by.results, strict=True):
            old.replace_all_uses_with(new)

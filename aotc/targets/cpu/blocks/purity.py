"""Which operations are pure: their results depend only on their operands, and they have no effect.

An operation that is not listed is not pure.
"""

from __future__ import annotations

from aotc.targets.cpu.blocks.flow import Node


def _names(text: str) -> frozenset[str]:
    return frozenset("llvm." + name for name in text.split())


# Operations that are cheap enough to be recomputed at their uses; indices consist of these.
CHEAP = _names(
    "mlir.constant mlir.zero mlir.undef mlir.poison mlir.addressof add sub mul and or xor shl "
    "lshr ashr udiv urem icmp select getelementptr zext sext trunc ptrtoint inttoptr bitcast "
    "extractvalue insertvalue intr.smax intr.smin intr.umax intr.umin intr.abs"
)

_PURE = CHEAP | _names(
    "sdiv srem fadd fsub fmul fdiv frem fneg fcmp fpext fptrunc sitofp uitofp fptosi fptoui "
    "freeze addrspacecast extractelement insertelement shufflevector "
    "intr.fabs intr.sqrt intr.exp intr.exp2 intr.exp10 intr.log intr.log2 intr.log10 intr.pow "
    "intr.powi intr.sin intr.cos intr.tan intr.fma intr.fmuladd intr.floor intr.ceil intr.trunc "
    "intr.rint intr.nearbyint intr.round intr.roundeven intr.copysign intr.maxnum intr.minnum "
    "intr.maximum intr.minimum intr.ctlz intr.cttz intr.ctpop intr.bitreverse intr.bswap "
    "intr.fshl intr.fshr intr.sadd.sat intr.uadd.sat intr.ssub.sat intr.usub.sat "
    "intr.sadd.with.overflow intr.uadd.with.overflow intr.ssub.with.overflow "
    "intr.usub.with.overflow intr.smul.with.overflow intr.umul.with.overflow intr.is.fpclass "
    "intr.vector.reduce.add intr.vector.reduce.mul intr.vector.reduce.fadd "
    "intr.vector.reduce.fmul intr.vector.reduce.and intr.vector.reduce.or "
    "intr.vector.reduce.xor intr.vector.reduce.smax intr.vector.reduce.smin "
    "intr.vector.reduce.umax intr.vector.reduce.umin intr.vector.reduce.fmax "
    "intr.vector.reduce.fmin intr.vector.reduce.fmaximum intr.vector.reduce.fminimum"
)


def is_pure(node: Node) -> bool:
    """Whether a node may be executed any number of times, wherever its operands are available."""
    return node.name in _PURE

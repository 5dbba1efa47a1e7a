"""Decompositions of special functions that torch-mlir does not support, as Chebyshev series.

All are computed in f64, and are as accurate as PyTorch's own. The series were fitted to values with
40 digits, and omit coefficients below 2e-17 of the largest one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

Tensor = Any


def special_functions(aten: Any) -> dict[Any, Any]:
    """The decompositions by operator."""
    functions: dict[str, Callable[..., Tensor]] = {
        "erfc": _erfc,
        "special_erfcx": _erfcx,
        "erfinv": _erfinv,
        "special_ndtri": _normal_quantile,
        "lgamma": _lgamma,
        "digamma": _digamma,
        "i0": lambda x: _i0e(x) * x.abs().exp(),
        "special_i0e": _i0e,
        "special_i1": lambda x: _i1e(x) * x.abs().exp(),
        "special_i1e": _i1e,
    }
    return {getattr(aten, name).default: _in_f64(one) for name, one in functions.items()}


def _in_f64(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Computes the function in f64, and rounds to PyTorch's result dtype: that of the input, or the
    default dtype for integers."""
    import torch

    @functools.wraps(function)
    def rounded(x: Tensor) -> Tensor:
        type_ = x.dtype if x.dtype.is_floating_point else torch.get_default_dtype()
        return function(x.double()).to(type_)

    return rounded


def _series(text: str) -> tuple[float, ...]:
    return tuple(map(float, text.split()))


def _sum(series: Sequence[float], t: Tensor) -> Tensor:
    """The sum of the Chebyshev series at t in [-1, 1], by Clenshaw's algorithm."""
    twice = t + t
    before: Any = 0.0
    now: Any = series[-1]
    for coefficient in series[-2:0:-1]:
        before, now = now, twice * now - before + coefficient
    return t * now - before + series[0]


# --- Error functions ------------------------------------------------------------------------------


def _erfcx_of_positive(x: Tensor) -> Tensor:
    """exp(x²) erfc(x) for x >= 0."""
    near = x.clamp(max=1e20)
    return _sum(_ERFCX, (near - 3) / (near + 3)) / (1 + x + x)


def _square_exponential(x: Tensor, sign: int) -> Tensor:
    """exp(±x²), as the product of exp(±head²) and the rest. head has so few bits that its square is
    exact."""
    import torch

    x = x.clamp(max=40)
    head = (x * 16).floor() / 16
    return torch.exp(sign * head * head) * torch.exp(sign * (x - head) * (x + head))


def _erfc(x: Tensor) -> Tensor:
    import torch

    size = x.abs()
    far = _square_exponential(size, -1) * _erfcx_of_positive(size)
    far = torch.where(x < 0, 2 - far, far)
    return torch.where(size < 0.5, 1 - torch.erf(x), far)


def _erfcx(x: Tensor) -> Tensor:
    import torch

    size = x.abs()
    there = _erfcx_of_positive(size)
    return torch.where(x < 0, 2 * _square_exponential(size, 1) - there, there)


def _erfinv(y: Tensor) -> Tensor:
    return _inverse(y, 1 - y.abs())


def _inverse(y: Tensor, rest: Tensor) -> Tensor:
    """erfinv(y), where `rest` is 1 - |y|."""
    import torch

    w = -(rest * (2 - rest)).log()
    near = _sum(_ERFINV, w.clamp(0, 5) * 0.4 - 1) * y
    root = w.clamp(5, 756).sqrt()
    size = _sum(_TAIL, (1 / root - _MIDDLE) / _HALF) * root
    far = torch.where(y < 0, -size, size)
    found = torch.where(w > 5, far, near)
    found = torch.where(rest == 0, y * math.inf, found)
    return torch.where(rest >= 0, found, math.nan)  # NaN also if rest is NaN


def _normal_quantile(p: Tensor) -> Tensor:
    import torch

    smaller = torch.where(p < 0.5, p, 1 - p)
    return math.sqrt(2) * _inverse(2 * p - 1, smaller + smaller)


# --- Gamma functions ------------------------------------------------------------------------------


def _sine_of_pi(x: Tensor) -> Tensor:
    """|sin(πx)|, which is 0 at integers."""
    return ((x - x.round()) * math.pi).sin().abs()


def _lgamma(x: Tensor) -> Tensor:
    import torch

    is_left = x < 0.5
    y = torch.where(is_left, 1 - x, x)
    found = _lgamma_of_positive(y)
    sine = _sine_of_pi(x)
    left = torch.where(x == 0, math.inf, math.log(math.pi) - sine.log() - found)
    return torch.where(x.abs() == math.inf, math.inf, torch.where(is_left, left, found))


def _lgamma_of_positive(x: Tensor) -> Tensor:
    """ln Γ(x) for x >= 0.5."""
    import torch

    is_low, is_near = x < 1.5, x < 2.5
    y = torch.where(is_low, x + 1, x).clamp(1.5, 2.5)
    near = _sum(_LGAMMA, (y - 2) * 2)
    low = (x - 1) * near - (x - 1).clamp(min=-0.5, max=1).log1p()
    near = torch.where(is_low, low, (x - 2) * near)
    product = x * (x + 1) * (x + 2) * (x + 3) * (x + 4) * (x + 5)
    is_middle = x < 10
    z = torch.where(is_middle, x + 6, x).clamp(min=8)
    series = _stirling(1 / (z * z)) / z
    far = (z - 0.5) * z.log() - z + 0.5 * math.log(2 * math.pi) + series
    far = torch.where(is_middle, far - product.clamp(max=1e9).log(), far)
    return torch.where(is_near, near, far)


def _stirling(q: Tensor) -> Tensor:
    """The remainder of Stirling's series for ln Γ(z), times z, at q = 1/z²."""
    found: Any = 1.0 / 156
    for coefficient in (-691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12):
        found = found * q + coefficient
    return found


def _digamma(x: Tensor) -> Tensor:
    """At ±0, it is an infinity of the opposite sign; at negative integers, it is NaN."""
    import torch

    is_left = x < 0.5
    y = torch.where(is_left, 1 - x, x)
    is_low = y < 10
    steps = 1 / y
    for k in range(1, 8):
        steps = steps + 1 / (y + k)
    z = torch.where(is_low, y + 8, y)
    q = 1 / (z * z)
    series: Any = 1.0 / 12
    for coefficient in (-691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12):
        series = series * q + coefficient
    found = z.log() - 0.5 / z - q * series
    found = torch.where(is_low, found - steps, found)
    part = (x - x.round()) * math.pi
    left = found - math.pi * part.cos() / part.sin()
    left = torch.where(x == x.round(), math.nan, left)
    found = torch.where(is_left, left, found)
    found = torch.where(x == 0, -1 / x, found)
    return torch.where(x == math.inf, x, found)


# --- Bessel functions -----------------------------------------------------------------------------


def _i0e(x: Tensor) -> Tensor:
    """exp(-|x|) I0(x)."""
    return _scaled_bessel(x.abs(), _I0, _I0_FAR, 1.0)


def _i1e(x: Tensor) -> Tensor:
    import torch

    size = x.abs()
    found = _scaled_bessel(size, _I1, _I1_FAR, size.clamp(max=8))
    return torch.where(x < 0, -found, found)


def _scaled_bessel(x: Tensor, near: Sequence[float], far: Sequence[float], factor: Any) -> Tensor:
    import torch

    y = x.clamp(min=8)
    beyond = _sum(far, 16 / y - 1) / y.sqrt()
    found = _sum(near, x.clamp(max=8) * 0.25 - 1) * factor
    return torch.where(x > 8, beyond, found)


# --- Coefficients ---------------------------------------------------------------------------------

# (1 + 2x) exp(x²) erfc(x), in the variable (x - 3) / (x + 3).
_ERFCX = _series("""
    1.1775625741965601 0.0053539045396156764 -0.093775503422842091 0.054366525557443222
    -0.018976596707845208 0.0044534260614627116 -0.00063355317105531469 1.7661719523171593e-05
    1.2841532864056671e-05 -2.0072285659059913e-06 -1.8075227904148371e-07
    7.5498283438250929e-08 1.885668523838603e-09 -2.6995190497983639e-09
    -1.4600791199391051e-11 1.0361607445969489e-10 1.475715976623473e-12
    -4.277340064396911e-12 -2.0792249285979901e-13 1.8134502003176963e-13
    1.973425574544739e-14 -7.2879437375926734e-15 -1.5169878690228116e-15
    2.3514112258781403e-16 1.0006111691821667e-16
""")
# erfinv(y) / y, in the variable w = -log(1 - y²) from 0 to 5.
_ERFINV = _series("""
    1.4912989404744903 0.60175630341082997 -0.0091705595000809263 -0.0049626353267664246
    0.00091537967000796417 -3.8895627570830002e-06 -2.4202599404944085e-05
    3.2665715925842334e-06 2.7758889803736634e-07 -1.3023363013643025e-07
    8.1046434247918695e-09 2.8624385176930751e-09 -5.9750900070341374e-10
    -1.222297879869563e-11 1.959596397135697e-11 -2.0510407207370845e-12
    -3.4468604612228004e-13 1.0546751676969238e-13 -2.4493755490805207e-15
    -2.948685683278964e-15 4.4073860711035857e-16 3.6794291751710051e-17
""")
# erfinv(y) / √w, in the variable 1/√w from 1/27.5 to 1/√5.
_MIDDLE, _HALF = (1 / math.sqrt(5) + 1 / 27.5) / 2, (1 / math.sqrt(5) - 1 / 27.5) / 2
_TAIL = _series("""
    0.96227185284002836 -0.03689845924089126 0.00044083981161187753 0.0014066499609055605
    -0.00026431564845719895 3.5091613883991167e-05 -1.2636830871883777e-05
    3.2868704112808051e-06 -1.0047310897123891e-06 5.1946961194019466e-07
    -1.582184805272592e-07 5.0056955232110882e-08 -3.1182307994251478e-08
    1.2628259346947535e-08 -3.5628268398244303e-09 2.0697455687995381e-09
    -1.2182632343397621e-09 4.0260642639907935e-10 -1.4276398238989281e-10
    1.0425922718595431e-10 -5.5202181244400102e-11 1.705230135624747e-11
    -7.1205891866341333e-12 5.6376769952385119e-12 -2.9616380393817422e-12
    8.9822047619801961e-13 -3.6898057895698869e-13 3.1835426039704611e-13
    -1.8376984980213846e-13 5.7349751290228393e-14 -1.8764990433974208e-14
    1.7584963764375466e-14 -1.2446697515164322e-14 4.4791203466709439e-15
    -1.0170809018193947e-15 8.3396977137145565e-16 -8.2950251882325353e-16
    4.0256522567183539e-16 -8.5415768667897416e-17 2.6257054900179018e-17
    -4.5117743198638452e-17 3.5226023603398246e-17
""")
# ln Γ(x) / (x - 2), for x from 1.5 to 2.5.
_LGAMMA = _series("""
    0.41418612492156676 0.16322170068760064 -0.0086589723941262846 0.00067275157260014847
    -6.1395569636282335e-05 6.1100657970035758e-06 -6.4100030338262228e-07
    6.9622426927689512e-08 -7.7472487337882167e-09 8.7740751406872395e-10
    -1.0070266869830198e-10 1.1678602130652374e-11 -1.3656871334744932e-12
    1.6079351149711552e-13 -1.9039501088488732e-14 2.2653768767833064e-15
    -2.7066568148318961e-16 3.245660731626191e-17
""")
# exp(-x) I0(x) for x from 0 to 8. The second series is √x exp(-x) I0(x) for x > 8, in 1/x.
_I0 = _series("""
    0.33839763720473803 -0.3046826723431984 0.17162090152220877 -0.094901097048047639
    0.049305284239670712 -0.023737414805899471 0.010546460394594998 -0.0043243099950505759
    0.0016394756169413357 -0.00057637557453858236 0.00018850288509584165
    -5.754195010082104e-05 1.6448448070728896e-05 -4.4167383584587505e-06
    1.1173875391201037e-06 -2.6707938539406119e-07 6.0469950225419186e-08
    -1.300025009986248e-08 2.6598237246823866e-09 -5.1897956016352627e-10
    9.675809035373237e-11 -1.7268262914415559e-11 2.9550526631296399e-12
    -4.856446783111929e-13 7.6761854986049361e-14 -1.1685332877993451e-14
    1.7153912855551331e-15 -2.4312798465479549e-16 3.3307945188222384e-17
""")
_I0_FAR = _series("""
    0.40224520550705439 0.0033691164782556943 6.8897583469168245e-05 2.8913705208347567e-06
    2.0489185894690638e-07 2.266668990498178e-08 3.3962320257083865e-09 4.9406023882249701e-10
    1.1889147107846439e-11 -3.1499165279632416e-11 -1.3215811840447713e-11
    -1.7941785315068062e-12 7.180124451383666e-13 3.8527783827421426e-13 1.54008621752141e-14
    -4.1505693472872222e-14 -9.5548466988283073e-15 3.8116806693526224e-15
    1.7725601330565263e-15 -3.425485619677219e-16 -2.8276239805165836e-16
    3.4612228676974612e-17 4.4656214202967598e-17
""")
# exp(-x) I1(x) / x for x from 0 to 8. The second series is √x exp(-x) I1(x) for x > 8, in 1/x.
_I1 = _series("""
    0.12629359322181682 -0.17641651835783406 0.10264365868984709 -0.052945981208094989
    0.024726449030626516 -0.010564084894626197 0.0041564229443128882 -0.0015135724506312532
    0.00051228595616857576 -0.00016176081582589674 4.7815651075500542e-05
    -1.3273163656039436e-05 3.4702513081376785e-06 -8.5687202646954547e-07
    2.0032947535521353e-07 -4.4450591287963281e-08 9.3815373864957726e-09
    -1.8872497517228294e-09 3.6255902815521172e-10 -6.6634897235020271e-11
    1.1736186298890901e-11 -1.9839743977649436e-12 3.2237933659455748e-13
    -5.0421855047279118e-14 7.6006842947354077e-15 -1.1055969477353862e-15
    1.5536319577362005e-16 -2.111421214358166e-17
""")
_I1_FAR = _series("""
    0.38928811750914005 -0.0097610974913614687 -0.00011058893876262371 -3.8825648088776906e-06
    -2.5122362378702088e-07 -2.6314688468895196e-08 -3.835380385964237e-09
    -5.5897434621965838e-10 -1.8974958123505413e-11 3.2526035830154884e-11
    1.4125807436613782e-11 2.0356285441470896e-12 -7.1985517762459084e-13
    -4.0835511110921974e-13 -2.1015418427726643e-14 4.272440016711951e-14
    1.0420276984128802e-14 -3.8144030724370075e-15 -1.8803547755107825e-15
    3.3082023109209285e-16 2.9626289976459501e-16 -3.2095259219934238e-17
    -4.6503053684893586e-17
""")

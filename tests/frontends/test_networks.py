"""Random networks of PyTorch's layers give what eager PyTorch gives, or are refused by name."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

from frontends.networks.generate import MOST_LAYERS, Network, generate, made  # noqa: E402
from frontends.networks.judge import judge  # noqa: E402
from frontends.networks.layers import LAYERS  # noqa: E402
from frontends.networks.run import describe  # noqa: E402

# The same networks on every machine and in every run; others by `make networks`.
SEEDS = range(1_000_000, 1_000_006)


@pytest.mark.parametrize("seed", SEEDS)
def test_networks_give_what_they_must(seed: int) -> None:
    verdict = judge(generate(seed))
    assert not verdict.is_fault, describe(verdict)


def test_all_layers_come_up() -> None:
    """Of each kind, and all kinds of sizes, in the first thousand networks."""
    found, sizes = set(), set()
    for seed in range(1000):
        network = generate(seed)
        sizes.add(network.sizes)
        found.update(made(network)[2])
        assert len(network.layers) <= MOST_LAYERS
    assert {"one", "batch", "both", "open", "fours", "square"} == sizes
    assert set().union(*LAYERS.values()) <= found


def test_a_wrong_result_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A verdict that cannot fail is none."""
    import frontends.networks.judge as under_test

    right = under_test.call
    monkeypatch.setattr(under_test, "call", lambda *words: [right(*words)[0] * 1.001])
    assert judge(Network(3, "one", "vector", (1, 2))).kind == "wrong"

"""Products on Hopper (sm_90a): TMA brings tiles, warpgroups multiply them (wgmma).

`family` is what `choice` asks, and puts a kernel together of the other modules: `block` (launch,
roles of warps, loads), `ring` and `tiles`, which kernels of `blackwell` and of `attention` begin
with, too; `cluster` (multicast), `products` and `fragments` (wgmma), `turns` (ping-pong), `split`
(K divided over a cluster), and what becomes of sums (`store`, `transposed_store`,
`swapped_store`, `extras`). `variants` has their parameters, `cost` the model of the chip that
chooses among them, `menu` the same model in a program that knows the sizes first, `few_rows` what
is better for few rows.
"""

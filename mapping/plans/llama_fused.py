"""Llama decoder layer, fused: norms feed their projections, gate and up never reach DRAM."""

from npusim import Grid, Plan, fuse, on

from ..kernels.attention import flash
from ..kernels.gated_ffn import gated_ffn
from ..kernels.matmul import matmul
from ..kernels.norm import norm
from ..kernels.norm_qkv import norm_qkv
from ..kernels.rope import rope

plan = Plan(
    "llama_fused",
    "norm feeds q, k, v on the chip; flash attention; gate and up never reach DRAM",
    bounds={"seq": (1, 8192), "batch": (1, 8)},
    steps=[
        fuse("norm_attn", "q", "k", "v")
        .use(norm_qkv(m=512, n=256, k=256, grid=Grid(n=4)))
        .because("the normalized rows are read by twelve tiles of columns"),
        on(op="RotaryEmbedding").use(rope(rows=16, heads=8)),
        on(op="Attention").use(flash(q=128, kv=128, heads=4)),
        fuse("o", "add_attn").use(matmul(m=512, n=512, k=256, grid=Grid(n=4))),
        on("norm_ffn").use(norm(rows=8, columns=4096)),
        fuse("gate", "sigmoid", "silu", "up", "mul")
        .use(gated_ffn(m=512, f=256, k=512, grid=Grid(n=4)))
        .because("saves four trips of the 14336-wide activations"),
        fuse("down", "add_ffn").use(matmul(m=512, n=512, k=256, grid=Grid(n=4))),
    ],
)

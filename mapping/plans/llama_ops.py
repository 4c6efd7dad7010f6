"""Llama decoder layer, operator by operator: every result goes to DRAM and comes back."""

from npusim import Grid, Plan, on

from ..kernels.attention import flash
from ..kernels.elementwise import elementwise
from ..kernels.matmul import matmul
from ..kernels.norm import norm
from ..kernels.rope import rope

plan = Plan(
    "llama_ops",
    "one kernel per operator, all results in DRAM",
    bounds={"seq": (1, 8192), "batch": (1, 8)},
    steps=[
        on(op="MatMul").use(matmul(m=512, n=512, k=256, grid=Grid(n=4))),
        on("k", "v")
        .use(matmul(m=128, n=512, k=512, grid=Grid(m=2, n=2), hold="a"))
        .because("N is 1024: four cores along N would have a quarter of a tile each"),
        on(op="Attention")
        .use(flash(q=128, kv=128, heads=4))
        .because("the four query heads of a group share each tile of keys"),
        on(op="RMSNormalization").use(norm(rows=8, columns=4096)),
        on(op="RotaryEmbedding").use(rope(rows=16, heads=8)),
        on("add_attn", "add_ffn", "sigmoid", "silu", "mul").use(elementwise(rows=8, columns=8192)),
    ],
)

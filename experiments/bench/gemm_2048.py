"""One plan for a product of 2048 x 2048 x 2048 on npu_a: a quadrant per core, B's panel held."""

from npusim.library.mapping.kernels.matmul import matmul

from npusim import Grid, Plan, on

plan = Plan(
    "gemm_2048",
    steps=[
        on(op="MatMul").use(matmul(m=512, n=512, k=256, grid=Grid(m=2, n=2), hold="b", acc_slots=1))
    ],
)

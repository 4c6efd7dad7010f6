"""A product cut into 128 x 128 x 128 pieces: as many instructions as there can be."""

from npusim.library.mapping.kernels.matmul import matmul

from npusim import Grid, Plan, on

plan = Plan(
    "gemm_small_tiles",
    steps=[
        on(op="MatMul").use(
            matmul(m=128, n=128, k=128, grid=Grid(m=2, n=2), hold="none", acc_slots=2)
        )
    ],
)

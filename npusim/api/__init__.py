"""What npusim does, as plain functions that return results.

`pipeline.run` takes a `request.Request` to a result; `models.load_model`, `hardware.load_hardware`
and `plans.load_plan` find what texts name; `stored.read_result` reads a result back;
`export.export` writes a model as ONNX.
"""

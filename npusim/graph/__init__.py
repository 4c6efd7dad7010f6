"""What is to be computed: operators by their ONNX names, shapes, float64 references, ONNX."""

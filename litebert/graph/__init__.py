"""A model as an ONNX graph, written node by node, so that shared weights are stored once."""

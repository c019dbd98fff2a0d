"""A model as an ONNX graph, written node by node, so that what layers share is stored once."""

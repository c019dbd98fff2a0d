"""Models for others to run: ONNX files, in float or eight bits, and a page that answers in the browser."""

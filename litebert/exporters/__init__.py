"""Models for others to run: ONNX files in float or int8, and a page that answers in the browser."""

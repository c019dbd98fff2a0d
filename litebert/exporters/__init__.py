"""Export models for other runtimes: ONNX in float or int8, and a web page that runs the model in the browser."""

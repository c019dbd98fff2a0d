"""What computes a model: torch, onnxruntime or OpenVINO, behind one small interface."""

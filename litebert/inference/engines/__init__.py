"""Inference engines with a common interface: torch, onnxruntime and OpenVINO."""

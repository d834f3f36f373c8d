"""A trained policy as an ONNX file."""

"""A fitted classifier as an ONNX file, which other programs run without this package or torch."""

from fspll._common.lazy import lazy_names

__all__ = ["Exported", "export_onnx"]

__getattr__, __dir__ = lazy_names(__name__, {"writing": "Exported export_onnx"})

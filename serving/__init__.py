"""The service: images in, JSON out. Runs on onnxruntime; knows neither torch nor gradio."""

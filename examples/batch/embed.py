"""Embeds the lines of a text file: python3 embed.py TEXTS.txt FOLDER --server http://127.0.0.1:8080 (README.md)

Dask distributes batches of lines to workers, which send them to a server with an OpenAI-compatible API. Only this
process writes files: a batch is a NumPy file in FOLDER, which is complete as soon as it exists under its name. So a
run that was killed at any time continues with the batches that have no file. A line that cannot be embedded has a row
of NaN; the reason is in a file next to the batch, which is written first.
"""

import argparse
import base64
import fcntl
import hashlib
import itertools
import json
import os
import pathlib
import sys
import time

import dask
import numpy
import urllib3
from dask.distributed import Client, LocalCluster, as_completed

REQUEST_BYTES = 500_000  # of texts per request, because servers limit the size of a body
WAITING_PER_WORKER = 4  # batches
WORKER_DEATHS = 100  # after this many, the batch counts as the cause
REASONS_SHOWN = 10
LOG_ENTRIES = 100  # of the scheduler
TEXT_STATUSES = (400, 413, 422)  # if a text is rejected


class Refused(Exception):
    """The server rejects requests for a reason other than a text."""


# ---- in a worker ----


def connect(key):
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
    statuses = (429, 502, 503, 504)
    retries = urllib3.Retry(total=8, backoff_factor=0.5, status_forcelist=statuses, allowed_methods=None)
    return urllib3.PoolManager(headers=headers, retries=retries, timeout=urllib3.Timeout(connect=5, read=300))


def ask(pool, server, texts):
    """Returns the vectors of texts, or the reason why the server rejects them."""
    body = json.dumps({"model": "any", "input": texts, "encoding_format": "base64"})
    answer = pool.request("POST", f"{server}/v1/embeddings", body=body)
    if answer.status in TEXT_STATUSES:
        return None, answer.data.decode()
    if answer.status != 200:
        raise Refused(f"{server}: {answer.data.decode()}")
    items = sorted(answer.json()["data"], key=lambda item: item["index"])
    return [numpy.frombuffer(base64.b64decode(item["embedding"]), numpy.float32) for item in items], None


def fault_of(text):
    if text == "":
        return "the line is empty"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "the line is not UTF-8"
    return None


def requests_of(numbered):
    """Divides pairs of a row number and its text by the size of the texts."""
    some, size = [], 0
    for row, text in numbered:
        if some and size + len(text.encode()) > REQUEST_BYTES:
            yield some
            some, size = [], 0
        some.append((row, text))
        size += len(text.encode())
    if some:
        yield some


def embed(texts, width, server, key):
    """Returns the vectors of a batch, an array [texts, width] of float32, and the reasons for rows that are NaN."""
    rows = numpy.full((len(texts), width), numpy.nan, numpy.float32)
    faults = ((row, fault_of(text)) for row, text in enumerate(texts))
    reasons = {row: fault for row, fault in faults if fault}
    pool = connect(key)
    left = list(requests_of((row, text) for row, text in enumerate(texts) if row not in reasons))
    while left:
        some = left.pop()
        vectors, reason = ask(pool, server, [text for _, text in some])
        if vectors is not None:
            rows[[row for row, _ in some]] = vectors
        elif len(some) == 1:
            reasons[some[0][0]] = reason
        else:  # until only the rejected texts are left
            left += [some[: len(some) // 2], some[len(some) // 2 :]]
    return rows, reasons


# ---- the folder ----


def sync(folder):
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def write_whole(path, write):
    """Writes a file under a temporary name and renames it once it is completely on disk."""
    part = path.with_suffix(".part")
    with open(part, "wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
    sync(path.parent)


def path_of(folder, first):
    return folder / f"{first:012d}.npy"


def begin(folder, job):
    """Locks the folder, and checks that it belongs to the same job."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = open(folder / "lock", "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(f"{folder}: another run is writing to it")
    path = folder / "job.json"
    if not path.exists():
        write_whole(path, lambda file: file.write(json.dumps(job).encode()))
    before = json.loads(path.read_text())
    for name, value in job.items():
        if before.get(name) != value:
            sys.exit(f"{folder}: belongs to a different job ({name} is {before.get(name)!r}, not {value!r})")
    return lock


# ---- the job ----


def batches_of(path, size):
    """Yields the first line's number and the lines of each batch."""
    with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        for first in itertools.count(0, size):
            texts = [line.rstrip("\r\n") for line in itertools.islice(file, size)]
            if not texts:
                return
            yield first, texts


def model_of(server, key):
    """Returns the model's name and the length of its vectors."""
    pool = connect(key)
    answer = pool.request("GET", f"{server}/v1/models")
    if answer.status != 200:
        raise Refused(f"{server}: {answer.data.decode()}")
    vectors, reason = ask(pool, server, ["a text"])
    if vectors is None:
        raise Refused(f"{server}: {reason}")
    return {"model": answer.json()["data"][0]["id"], "dimensions": len(vectors[0])}


def common_model(servers, key):
    first, *others = [model_of(server, key) for server in servers]
    for server, other in zip(servers[1:], others):
        if other != first:
            sys.exit(f"the servers have different models: {servers[0]} {first}, {server} {other}")
    return first


def digest_of(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_batch(folder, first, rows, reasons):
    path = path_of(folder, first)
    lines = {first + row + 1: reason for row, reason in sorted(reasons.items())}
    if lines:
        write_whole(path.with_suffix(".json"), lambda file: file.write(json.dumps(lines).encode()))
    else:  # from a run that was killed before it wrote the vectors
        path.with_suffix(".json").unlink(missing_ok=True)
    write_whole(path, lambda file: numpy.save(file, rows))


def write_missing(client, folder, batches, width, servers, key):
    """Writes the batches that have no file. Returns the number of their vectors."""
    places, done = itertools.cycle(servers), 0
    missing = ((first, texts) for first, texts in batches if not path_of(folder, first).exists())

    def submit(first, texts):
        return client.submit(embed, texts, width, next(places), key, key=f"batch-{first}", pure=False)

    limit = WAITING_PER_WORKER * max(1, sum(client.nthreads().values()))
    waiting = as_completed([submit(*one) for one in itertools.islice(missing, limit)])
    for future in waiting:
        rows, reasons = future.result()
        write_batch(folder, int(future.key.removeprefix("batch-")), rows, reasons)
        done += len(rows) - len(reasons)
        print(f"{done} texts", file=sys.stderr)
        for one in itertools.islice(missing, 1):
            waiting.add(submit(*one))
    return done


def report_refused(folder):
    """Ends with an error if lines have no vector."""
    reasons = {}
    for path in sorted(folder.glob("0*.json")):
        reasons.update(json.loads(path.read_text()))
    for line, reason in itertools.islice(reasons.items(), REASONS_SHOWN):
        print(f"line {line}: {reason}", file=sys.stderr)
    if reasons:
        sys.exit(f"lines without a vector: {len(reasons)}. Their rows are NaN; the reasons are in {folder}/0*.json")


def read_options():
    options = argparse.ArgumentParser(description="Embeds each line of a text file once.")
    options.add_argument("texts", type=pathlib.Path, help="text file with one text per line")
    options.add_argument("folder", type=pathlib.Path, help="folder for the vectors")
    options.add_argument("--server", action="append", required=True, help="URL of a server; repeat for several")
    options.add_argument("--key", help="API key of the servers")
    options.add_argument("--batch", type=int, default=256, help="texts per vector file (default 256)")
    options.add_argument("--workers", type=int, default=2, help="local workers (default 2)")
    options.add_argument("--scheduler", help="address of a Dask cluster, instead of local workers")
    return options.parse_args()


def main():
    try:
        run_job(read_options())
    except (Refused, urllib3.exceptions.HTTPError) as error:
        sys.exit(str(error))


def start_workers(count):
    try:
        return LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None)
    except RuntimeError as error:  # for example if a worker is killed while it starts
        sys.exit(f"the workers did not start: {error}. Run the command again")


def run_job(given):
    servers = [server.rstrip("/") for server in given.server]
    model = common_model(servers, given.key)
    lock = begin(given.folder, {"sha256": digest_of(given.texts), "batch": given.batch, **model})
    dask.config.set({"distributed.scheduler.allowed-failures": WORKER_DEATHS})
    # the default is 100,000 entries, which use 45 KB more memory with each batch
    dask.config.set({"distributed.admin.low-level-log-length": LOG_ENTRIES})
    cluster = given.scheduler or start_workers(given.workers)
    began = time.monotonic()
    with Client(cluster) as client:
        batches = batches_of(given.texts, given.batch)
        done = write_missing(client, given.folder, batches, model["dimensions"], servers, given.key)
    seconds = time.monotonic() - began
    print(f"{done} texts embedded in {seconds:.1f} s, {done / seconds:.0f} per second")
    report_refused(given.folder)
    lock.close()


if __name__ == "__main__":
    main()

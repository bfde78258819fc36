"""A build back end that builds nothing, so that pip hands out a source archive without running its build.

pip asks a source archive's back end for its metadata before it saves the file, which would download and run
scikit-build-core, cmake and what the archive's own settings say. With build isolation off and this module
found first under the same name, pip is told the name and version that it asked for, and nothing of the
archive runs. Its digest is checked before that. Source: PEP 517 (the hooks), PEP 643 (the metadata).
"""

from __future__ import annotations

import os

BACK_END = ("scikit_build_core", "build")
"""Package and module that the source archives of the catalogue name as their back end."""

_MODULE = '''"""Written by llamaops: says what was asked for, and builds nothing."""

import os


def get_requires_for_build_wheel(config_settings=None):
    return []


get_requires_for_build_sdist = get_requires_for_build_wheel


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    folder = "{file_name}-{version}.dist-info"
    os.mkdir(os.path.join(metadata_directory, folder))
    with open(os.path.join(metadata_directory, folder, "METADATA"), "w", encoding="utf-8") as file:
        file.write("Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n")
    return folder


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    raise RuntimeError("llamaops downloads this archive and does not let pip build it")


build_sdist = build_wheel
'''


def write_stub(folder: str, name: str, version: str) -> str:
    """Write the back end for one archive into a folder, and return what PYTHONPATH has to begin with.

    Raises: OSError.
    """
    package, module = BACK_END
    place = os.path.join(folder, "back-end", package)
    os.makedirs(place, mode=0o700)
    text = _MODULE.format(name=name, file_name=name.replace("-", "_"), version=version)
    for file_name, content in (("__init__.py", ""), (f"{module}.py", text)):
        with open(os.path.join(place, file_name), "w", encoding="utf-8") as file:
            file.write(content)
    return os.path.dirname(place)

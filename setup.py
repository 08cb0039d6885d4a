"""Builds the extension heed._heed with CMake; everything else is in pyproject.toml."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = pathlib.Path(__file__).resolve().parent
VERSION = re.search(r"project\(heed VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


def pybind11_folder():
    """Where CMake finds pybind11, if it comes as a Python package."""
    try:
        import pybind11
    except ImportError:
        return []
    return [f"-Dpybind11_DIR={pybind11.get_cmake_dir()}"]


class CMakeBuild(build_ext):
    def build_extension(self, extension):
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        # HEED_BUILD: a build folder that is there already.
        folder = ROOT / os.environ.get("HEED_BUILD", f"build/wheel-{version}")
        configure = ["cmake", "-S", str(ROOT), "-B", str(folder), "-DCMAKE_BUILD_TYPE=Release",
                     "-DCMAKE_UNITY_BUILD=ON", "-DHEED_PYTHON=ON", "-DHEED_BUILD_TESTS=OFF",
                     "-DHEED_MPI=OFF", f"-DPython_EXECUTABLE={sys.executable}"]
        if shutil.which("ninja"):
            configure += ["-G", "Ninja"]
        if shutil.which("ccache"):
            configure += ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"]
        subprocess.run(configure + pybind11_folder(), check=True)
        subprocess.run(["cmake", "--build", str(folder), "--target", "heed_python", "-j",
                        str(os.cpu_count() or 1)], check=True)
        built = next((folder / "python" / "heed").glob("_heed*.so"))
        target = pathlib.Path(self.get_ext_fullpath(extension.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(built, target)


setup(version=VERSION, ext_modules=[Extension("heed._heed", [])],
      cmdclass={"build_ext": CMakeBuild})

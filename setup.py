"""The one thing that pyproject.toml cannot say: the packages are found, and live under the name ``badbatch``."""

from setuptools import find_packages, setup

setup(packages=[f"badbatch.{name}" for name in find_packages(include=["harness*", "conformance*"])])

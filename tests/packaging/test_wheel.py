"""The wheel works outside of the checkout; packaging/smoke_test.py says how that is tried."""

import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from configparser import ConfigParser
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

CHECKOUT = Path(__file__).resolve().parents[2]
PACKAGING = CHECKOUT / "packaging"


@pytest.mark.slow
@pytest.mark.skipif(not (CHECKOUT / "pyproject.toml").exists(), reason="needs the checkout")
def test_wheel_works_outside_of_the_checkout():
    done = subprocess.run(
        [sys.executable, PACKAGING / "smoke_test.py"],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=580,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "window: opened" in done.stdout
    if sys.platform == "linux":
        assert "circuitview: painted its window" in done.stdout


def test_constraints_pin_every_direct_dependency_inside_its_range():
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = (PACKAGING / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    for text in project["dependencies"] + project["optional-dependencies"]["dev"]:
        wanted = Requirement(text)
        pinned = pins[canonicalize_name(wanted.name)]
        assert wanted.specifier.contains(pinned, prereleases=True), f"{wanted}: {pinned}"
    # A local label like +cpu would tie the pin to one place to download from.
    assert not [name for name, version in pins.items() if "+" in version]


def test_desktop_files_name_the_same_program():
    from circuitview.gui.app import DESKTOP_NAME

    entry = ConfigParser(interpolation=None)
    entry.optionxform = str
    entry.read(PACKAGING / f"{DESKTOP_NAME}.desktop", encoding="utf-8")
    assert entry["Desktop Entry"]["Icon"] == DESKTOP_NAME
    assert entry["Desktop Entry"]["Exec"] == "circuitview"
    about = ET.parse(PACKAGING / f"{DESKTOP_NAME}.metainfo.xml").getroot()
    assert about.findtext("id") == DESKTOP_NAME
    assert about.findtext("launchable") == f"{DESKTOP_NAME}.desktop"
    assert (CHECKOUT / "resources" / "icons" / "circuitview.svg").exists()

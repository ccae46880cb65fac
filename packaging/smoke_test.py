"""Builds the wheel, installs it into a clean environment, and uses it outside of the checkout.

    python packaging/smoke_test.py

The new environment borrows the libraries of the one that runs this script and has circuitview from
the wheel alone. Nothing is downloaded. Each step prints a line; the first failure ends the script.
"""

import argparse
import os
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
import zipfile
from pathlib import Path

NAME = "io.github.circuitview.circuitview"
# Where a desktop looks, below the prefix of the environment.
DESKTOP_FILES = (
    f"share/applications/{NAME}.desktop",
    f"share/metainfo/{NAME}.metainfo.xml",
    f"share/icons/hicolor/scalable/apps/{NAME}.svg",
)
CHECKOUT = Path(__file__).resolve().parent.parent
PROMPT = "the cat sat on the mat . the"
# Opens the window as a user would, and closes it once an analysis is on the screen.
WINDOW = """
import sys
from PySide6.QtCore import QTimer
import circuitview.gui.app as program

shown = []
MainWindow = program.MainWindow

def window(document, store):
    made = MainWindow(document, store)

    def look(snapshot, _):
        if snapshot.results.expansion is not None and not shown:
            shown.append(snapshot.results.expansion.error)
            QTimer.singleShot(0, made.close)

    document.changed.connect(look)
    QTimer.singleShot(120_000, made.close)
    return made

program.MainWindow = window
code = program.main()
sys.exit(code if shown else "the window was closed before it showed an analysis")
"""


class Installed:
    """circuitview in an environment of its own, and a folder to work in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = folder / "environment"
        self.work = folder / "work"
        self.work.mkdir()
        scripts = "Scripts" if os.name == "nt" else "bin"
        suffix = ".exe" if os.name == "nt" else ""
        self.python = self.environment / scripts / f"python{suffix}"
        self.program = self.environment / scripts / f"circuitview{suffix}"

    def install(self, wheel: Path) -> None:
        """Make the environment and put the wheel into it."""
        run([sys.executable, "-m", "venv", "--without-pip", self.environment])
        inside = self.ask("import sysconfig; print(sysconfig.get_path('purelib'))")
        # Libraries of the environment outside; an editable install there is not seen this way.
        (Path(inside) / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
        pip = [sys.executable, "-m", "pip", "--python", self.python]
        run([*pip, "install", "--no-deps", "--no-index", "--quiet", wheel])

    def ask(self, code: str) -> str:
        """What `code` prints, run outside of the checkout."""
        return self.run([self.python, "-c", code]).strip()

    def surroundings(self, **environment: str) -> dict[str, str]:
        """The environment variables of a user with a home folder of its own."""
        home = {name: str(self.folder / "home") for name in ("HOME", "XDG_CONFIG_HOME", "APPDATA")}
        surroundings = {
            name: value
            for name, value in os.environ.items()
            if name not in ("PYTHONPATH", "PYTHONHOME", "DISPLAY", "WAYLAND_DISPLAY")
        }
        return surroundings | home | environment

    def run(self, command: list[str | Path], **environment: str) -> str:
        """What `command` prints, run outside of the checkout."""
        return run(command, cwd=self.work, env=self.surroundings(**environment))

    def start_and_interrupt(self) -> None:
        """Start `circuitview` alone, as from a menu, and end it by Ctrl-C once it has painted.

        Raises:
            SystemExit: where it ends by itself, never paints, or does not leave with 0.
        """
        log = self.folder / "window.log"
        with log.open("w", encoding="utf-8") as said:
            running = subprocess.Popen(
                [str(self.program)],
                cwd=self.work,
                env=self.surroundings(QT_QPA_PLATFORM="offscreen"),
                stdout=said,
                stderr=subprocess.STDOUT,
            )
            try:
                wait_for_first_paint(running)
                running.send_signal(signal.SIGINT)
                code = running.wait(timeout=60)
            except subprocess.TimeoutExpired:
                sys.exit("circuitview did not leave at Ctrl-C")
            finally:
                if running.poll() is None:
                    running.kill()
                    running.wait()
        # The platform without a screen says once a window that it has no size hints to give.
        lines = log.read_text(encoding="utf-8").splitlines()
        words = "\n".join(line for line in lines if line and "propagateSizeHints" not in line)
        if code or words:
            sys.exit(f"circuitview left with {code}:\n{words}")
        if not list((self.folder / "home").rglob("circuitview/*")):
            sys.exit("circuitview kept no settings: its window was not closed as a user closes it")


def wait_for_first_paint(running: "subprocess.Popen[bytes]", most: float = 120.0) -> None:
    """Return once torch is loaded, which the window asks for only after it has painted.

    Raises:
        SystemExit: where the process ends before, or takes longer than `most` seconds.
    """
    maps = Path(f"/proc/{running.pid}/maps")
    started = time.monotonic()
    while time.monotonic() - started < most:
        if running.poll() is not None:
            sys.exit(f"circuitview ended by itself with {running.returncode}")
        if "libtorch" in maps.read_text(encoding="utf-8"):
            return
        time.sleep(0.1)
    sys.exit(f"circuitview painted no window in {most:g} s")


def run(command: list[str | Path], **options: object) -> str:
    """What `command` prints.

    Raises:
        SystemExit: with all that it said, where it fails.
    """
    done = subprocess.run(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        timeout=600,
        check=False,
        **options,  # type: ignore[call-overload]
    )
    if done.returncode:
        shown = " ".join(str(part) for part in command[:6])
        sys.exit(f"{shown} … left with {done.returncode}:\n{done.stdout}")
    return str(done.stdout)


def build_wheel(folder: Path) -> Path:
    """The wheel of this checkout, built into `folder`."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder]
    run([*command, CHECKOUT])
    (wheel,) = folder.glob("circuitview-*.whl")
    return wheel


def check_content(wheel: Path) -> None:
    """Resources are in the wheel, tests and runs in progress are not."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    models = (CHECKOUT / "resources" / "models").glob("*/model.safetensors")
    wanted = [f"circuitview/resources/models/{path.parent.name}/{path.name}" for path in models]
    wanted += ["circuitview/py.typed", "circuitview/resources/icons/circuitview.svg"]
    wanted += ["circuitview/resources/fonts/OFL.txt", "circuitview/gui/app.py"]
    missing = [name for name in wanted if name not in names]
    if missing:
        sys.exit(f"the wheel lacks {missing}")
    strange = [name for name in names if name.startswith("tests/") or "/training/state" in name]
    if strange:
        sys.exit(f"the wheel should not have {strange}")


def use(installed: Installed) -> None:
    """The program's commands, as a user gives them."""
    home = installed.ask("import circuitview; print(circuitview.__file__)")
    if not Path(home).is_relative_to(installed.environment):
        sys.exit(f"{home} is not the installed circuitview")
    lacking = [name for name in DESKTOP_FILES if not (installed.environment / name).is_file()]
    if lacking:
        sys.exit(f"the installation lacks {lacking}")
    program: str | Path = installed.program
    print(installed.run([program, "--version"]).strip())
    print(installed.run([program, "models"]).strip())
    asked: list[str | Path] = ["cat-on-the-mat", "--prompt", PROMPT]
    table = installed.run([program, "paths", *asked, "--target", "cat"])
    if "6.7588" not in table:
        sys.exit(f"paths printed other numbers:\n{table}")
    print("paths: 6.7588, as worked by hand")
    for ending, start in (("svg", b"<?xml"), ("pdf", b"%PDF-"), ("png", b"\x89PNG")):
        name = f"diagram.{ending}"
        installed.run([program, "export", *asked, "--figure", "diagram", "--out", name])
        content = (installed.work / name).read_bytes()
        if not content.startswith(start) or len(content) < 2000:
            sys.exit(f"{name} is no whole {ending.upper()} file")
        print(f"export: {name}, {len(content):,} bytes")
    installed.run([installed.python, "-c", WINDOW], QT_QPA_PLATFORM="offscreen")
    print("window: opened, analysed the first prompt, closed")
    if sys.platform == "linux":  # elsewhere nothing tells from outside when it has painted
        installed.start_and_interrupt()
        print("circuitview: painted its window, left at Ctrl-C")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", type=Path, help="test this wheel instead of building one")
    given = parser.parse_args().wheel
    with tempfile.TemporaryDirectory(prefix="circuitview-smoke-") as name:
        folder = Path(name).resolve()
        wheel = given.resolve() if given else build_wheel(folder)
        check_content(wheel)
        print(f"wheel: {wheel.name}, {wheel.stat().st_size / 1e6:.1f} MB")
        installed = Installed(folder)
        installed.install(wheel)
        use(installed)


if __name__ == "__main__":
    main()

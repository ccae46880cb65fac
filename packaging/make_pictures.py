"""The pictures of README.md, grabbed from the running window, and its table of benchmarks.

Without arguments it writes resources/pictures/window-*.png; with --benchmarks FILE the table, from
the JSON that tests/benchmarks wrote to FILE (set CIRCUITVIEW_BENCHMARK_FILE for that run).
"""

import argparse
import json
import os
import re
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

    wait(lambda: document.snapshot.results.expansion is not None)
    window.host.docks["ablation"].panel.run()
    wait(lambda: not document.jobs.busy)
    PICTURES.mkdir(exist_ok=True)
    for name in ("light", "dark"):
        document.edit(lambda state, name=name: replace(state, theme=name))
        wait(lambda: True)
        picture = PICTURES / f"window-{name}.png"
        window.grab().save(str(picture))
    window.close()
    document.jobs.shutdown()


def write_benchmarks(file: Path) -> None:
    """Put the rows of `file` into README.md, between the marker and the next heading."""
    found = json.loads(file.read_text(encoding="utf-8"))
    rows = [
        f"Medians on {found['machine']}.",
        "",
        "| what | measured | yardstick | figure | budget |",
        "|---|---|---|---|---|",
    ]
    for row in found["rows"]:
        rows.append(
            f"| {row['what']} | {row['measured']} | {row['yardstick']} | "
            f"{row['figure']:.2f} {row['unit']} | {row['budget']:g} {row['unit']} |"
        )
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmarks", type=Path, metavar="FILE")
    chosen = parser.parse_args()
    if chosen.benchmarks is None:
        grab_window()
    else:
        write_benchmarks(chosen.benchmarks)

"""Write the hand-built models into resources/models/ (or the folder given).

python packaging/build_hand_models.py [FOLDER]
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


def main() -> None:
    from circuitview.core.hand_built import hand_built

    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "resources" / "models"
    for model in hand_built():
        sys.stdout.write(f"{model.write(folder)}\n")


if __name__ == "__main__":
    main()

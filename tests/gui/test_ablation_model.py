"""The rows of a run's table, as the model of the table has them."""

from PySide6.QtCore import Qt

from circuitview.gui.tables.ablation_model import AblationModel
from tests.figures.lab_rows import head_rows, order_rows


def titles(model):
    across = Qt.Orientation.Horizontal
    return [model.headerData(place, across) for place in range(model.columnCount())]


def test_a_site_that_comes_twice_in_one_report_has_one_row(qapp):
    """A quick run over a text showed every head once for each window."""
    model = AblationModel()
    model.show_run((), "loss", by_order=False)
    first, second = head_rows(seed=1), head_rows(seed=2)
    model.put([*first, *second])
    assert model.rows == second
    model.put(first)
    assert model.rows == first
    assert model.rowCount() == len(first)


def test_columns_have_the_words_of_the_exports(qapp):
    model = AblationModel()
    model.show_run(head_rows(), "logit", by_order=False)
    assert titles(model) == ["removed", "contribution", "effect", "±", "ablated"]
    model.show_run(order_rows([3.0, 2.0]), "loss", by_order=True)
    assert titles(model) == ["paths up to", "loss", "marginal", "±"]

"""Contribution against effect with its table; effects alone where there is no contribution."""

from dataclasses import replace

import pytest

from circuitview.core.ablation.sites import Site
from circuitview.core.path import Path
from circuitview.figures.ablation import lab_figure, lab_points
from circuitview.figures.figure import Curve, Rect, Text, groups, texts, walk
from circuitview.figures.theme import DARK, LIGHT, contrast
from tests.figures.lab_rows import EXTREMES, SIZES, head_rows, require_sound, some_rows


def drawn(rows, size=(1280, 720), theme=LIGHT, metric="logit", frozen=False, **more):
    return lab_figure(
        rows,
        metric=metric,
        clean=6.14,
        frozen=frozen,
        title="Each head removed",
        note="a model, a prompt",
        theme=theme,
        width=size[0],
        height=size[1],
        **more,
    )


def named(figure, name):
    return next(group for group in groups(figure) if group.id == name)


def rings(figure):
    return [item for item in walk(figure) if isinstance(item, Rect) and item.stroke == LIGHT.accent]


@pytest.mark.parametrize("theme", [LIGHT, DARK])
@pytest.mark.parametrize("contributions", [True, False])
@pytest.mark.parametrize("kind", EXTREMES)
@pytest.mark.parametrize("size", SIZES)
def test_lab_figure_is_sound_at_every_size_for_all_values(size, kind, contributions, theme):
    rows = head_rows(kind=kind, contributions=contributions)
    for metric in ("logit", "loss"):
        require_sound(drawn(rows, size, theme, metric), size)


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_words_of_the_lab_figure_can_be_read_on_its_paper(theme):
    for contributions in (True, False):
        figure = drawn(head_rows(contributions=contributions), theme=theme)
        words = [item for item in walk(figure) if isinstance(item, Text)]
        assert min(contrast(text.color, theme.background) for text in words) >= 4.5


def test_axes_name_units_and_what_was_held():
    assert "effect, later layers free (logits)" in texts(drawn(head_rows()))
    frozen = texts(drawn(head_rows(), frozen=True, metric="loss"))
    assert "effect, all else frozen (nats)" in frozen
    assert "contribution (logits)" in frozen
    share = texts(drawn(head_rows(), metric="probability"))
    assert "effect, later layers free" in share


def test_only_a_logit_has_a_diagonal():
    def dashed(metric):
        figure = drawn(head_rows(), metric=metric)
        return any(isinstance(item, Curve) and item.dash for item in walk(figure))

    assert dashed("logit")
    assert dashed("difference")
    assert not dashed("loss")
    assert "effect = −contribution" in texts(drawn(head_rows()))
    assert "effect = −contribution" not in texts(drawn(head_rows(), metric="kl"))


def test_a_loss_uses_the_whole_height_though_contributions_are_larger():
    rows = [replace(row, effect=row.effect / 1000, stderr=None) for row in head_rows()]
    figure = drawn(rows, metric="loss")
    dots = [group.items[0].y for group in groups(figure) if (group.id or "").startswith("point-")]
    assert max(dots) - min(dots) > 300


def test_error_bars_are_as_long_as_the_standard_error():
    rows = head_rows()
    figure = drawn(rows, size=(900, 500))
    first, second = (
        next(curve for curve in named(figure, f"error-{row.site}").items) for row in rows[:2]
    )
    lengths = [curve.commands[1][2] - curve.commands[0][2] for curve in (first, second)]
    assert lengths[0] / lengths[1] == pytest.approx(rows[0].stderr / rows[1].stderr)
    without = drawn(head_rows(errors=False))
    assert not any((group.id or "").startswith("error-") for group in groups(without))


def test_the_marked_site_is_ringed_named_and_pointed_at_by_its_numbers():
    rows = head_rows()
    figure = drawn(rows, marked=Site.parse("1.4"))
    assert len(rings(figure)) == 1
    row = next(row for row in rows if str(row.site) == "1.4")
    title = named(figure, "point-1.4").title
    assert title.startswith("1.4: contribution ")
    assert f"± {row.stderr:.2f}" in title


def test_two_hundred_paths_are_dots_with_only_far_ones_named():
    sites = [
        Site(paths=(Path.parse(f"token > {a}.{b} > {a + 1}.{c}"),))
        for a in range(2)
        for b in range(10)
        for c in range(10)
    ]
    rows = some_rows(sites)
    figure = drawn(rows)
    require_sound(figure, (1280, 720))
    dots = [group for group in groups(figure) if (group.id or "").startswith("point-")]
    assert len(dots) == len(rows) == 200
    table = set(texts(named(figure, "table").items))
    on_plot = [text for text in texts(figure) if text.startswith("token") and text not in table]
    assert 3 < len(on_plot) < 60
    assert any(text.endswith(" more") for text in table)


def test_the_table_says_what_the_rows_say():
    figure = drawn(head_rows()[:1])
    row = head_rows()[0]
    written = texts(named(figure, "table").items)
    assert written[:5] == ("removed", "contribution", "effect", "± s.e.", "ablated")
    assert f"{row.stderr:.2f}" in written
    assert f"{row.value:.2f}" in written
    assert written[-2:] == ("clean", "6.14")
    plain = texts(named(drawn(head_rows(errors=False)[:1]), "table").items)
    assert "± s.e." not in plain


def test_rows_without_contribution_are_bars_by_size_with_whiskers():
    rows = head_rows(contributions=False)
    figure = drawn(rows, metric="loss", marked=Site.parse("0.2"))
    bars = [group for group in groups(figure) if (group.id or "").startswith("effect-")]
    ranked = sorted(rows, key=lambda row: -abs(row.effect))
    assert [bar.data for bar in bars] == [row.site for row in ranked]
    first = next(item for item in bars[0].items if isinstance(item, Rect))
    second = next(item for item in bars[1].items if isinstance(item, Rect))
    assert first.width / second.width == pytest.approx(
        abs(ranked[0].effect / ranked[1].effect), rel=1e-6
    )
    assert all(any(isinstance(item, Curve) for item in bar.items) for bar in bars[:3])
    assert named(figure, "effect-0.2").items[0].fill == LIGHT.selection


def test_bars_that_do_not_fit_are_counted_and_the_marked_one_stays():
    rows = head_rows(6, 12, contributions=False)
    smallest = min(rows, key=lambda row: abs(row.effect))
    figure = drawn(rows, size=(640, 360), metric="loss", marked=smallest.site)
    bars = [group for group in groups(figure) if (group.id or "").startswith("effect-")]
    assert bars[-1].data == smallest.site
    assert f"{len(rows) - len(bars)} more, of smaller effect" in texts(figure)


def test_nothing_measured_yet_is_said():
    for contributions in (True, False):
        assert "nothing measured yet" in texts(drawn(head_rows(contributions=contributions)[:0]))


def test_points_are_only_of_rows_with_a_contribution():
    rows = [replace(head_rows()[0], contribution=None), *head_rows()[1:3]]
    assert [point.label for point in lab_points(rows, "logit")] == ["0.1", "0.2"]
    require_sound(drawn(rows), (1280, 720))


def test_axis_of_a_text_says_that_contributions_are_to_its_next_tokens():
    words = "contribution to the next tokens, mean (logits)"
    assert words in texts(drawn(head_rows(), metric="loss", of_text=True))
    assert words not in texts(drawn(head_rows(), metric="loss"))

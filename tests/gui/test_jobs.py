"""The worker: order, progress, cancelling, errors, the end."""

import random
import threading

import pytest
from PySide6.QtCore import QCoreApplication

from circuitview.core.names import CircuitviewError
from circuitview.core.progress import Progress
from circuitview.gui.jobs import JobRunner


class Listener:
    """Writes down what a job says."""

    def __init__(self, job):
        self.heard = []
        job.progressed.connect(self.on_progress)
        job.finished.connect(self.on_finished)
        job.failed.connect(self.on_failed)
        job.cancelled.connect(self.on_cancelled)

    def on_progress(self, progress):
        self.heard.append(("progressed", progress))

    def on_finished(self, result):
        self.heard.append(("finished", result))

    def on_failed(self, failure):
        self.heard.append(("failed", failure))

    def on_cancelled(self, _nothing):
        self.heard.append(("cancelled", None))

    @property
    def ends(self):
        return [kind for kind, _ in self.heard if kind != "progressed"]

    @property
    def partials(self):
        return [row for kind, p in self.heard if kind == "progressed" for row in p.partials]


@pytest.fixture
def jobs(qapp):
    runner = JobRunner()
    yield runner
    runner.shutdown()


def counting(n, closed=None, gate=None):
    def work():
        try:
            for i in range(n):
                if gate is not None:
                    gate.wait(10)
                yield Progress(i + 1, n, f"row {i}")
            return n
        finally:
            if closed is not None:
                closed.append(True)

    return work


def test_function_result_arrives_on_the_main_thread(qtbot, jobs):
    threads = []
    job = jobs.start(threading.current_thread)
    job.finished.connect(lambda _: threads.append(threading.current_thread()))
    with qtbot.waitSignal(job.finished) as heard:
        pass
    assert heard.args[0] is not threading.main_thread()
    assert threads == [threading.main_thread()]


def test_all_partial_rows_arrive_in_order_in_few_reports(qtbot, jobs):
    job = jobs.start(counting(500))
    listener = Listener(job)
    with qtbot.waitSignal(job.finished):
        pass
    assert listener.partials == [f"row {i}" for i in range(500)]
    assert len(listener.heard) < 100
    assert listener.heard[-1] == ("finished", 500)
    assert listener.heard[-2][1].done == 500


def test_expected_error_becomes_one_line_and_a_fault_a_traceback(qtbot, jobs, caplog):
    def refuse():
        raise CircuitviewError("type some text")

    def break_down():
        return {}["missing"]

    job = jobs.start(refuse)
    with qtbot.waitSignal(job.failed) as heard:
        pass
    assert heard.args[0].text == "type some text"
    assert heard.args[0].expected
    assert not caplog.records
    job = jobs.start(break_down)
    with qtbot.waitSignal(job.failed) as heard:
        pass
    assert "KeyError" in heard.args[0].text
    assert "break_down" in heard.args[0].details
    assert not heard.args[0].expected
    (logged,) = caplog.records
    assert logged.exc_info[0] is KeyError


def test_error_after_yields_keeps_the_rows_before_it(qtbot, jobs):
    def work():
        yield Progress(1, 3, "one")
        yield Progress(2, 3, "two")
        raise CircuitviewError("out of luck")

    job = jobs.start(work)
    listener = Listener(job)
    with qtbot.waitSignal(job.failed):
        pass
    assert listener.partials == ["one", "two"]
    assert listener.ends == ["failed"]


def test_cancel_closes_the_generator_and_silences_it(qtbot, jobs):
    closed, gate = [], threading.Event()
    job = jobs.start(counting(10_000, closed, gate))
    listener = Listener(job)
    job.cancel()
    with qtbot.waitSignal(job.cancelled):
        gate.set()
    assert not job.running
    assert listener.heard == [("cancelled", None)]
    assert closed in ([True], [])  # it may not have begun


def test_urgent_job_is_served_in_the_middle_of_a_long_one(qtbot, jobs):
    order, gate = [], threading.Event()
    begun = threading.Event()

    def long():
        for i in range(50):
            begun.set()
            gate.wait(10)
            order.append("long")
            yield Progress(i + 1, 50)
        return "long"

    slow = jobs.start(long)
    begun.wait(10)
    quick = jobs.start(lambda: order.append("quick"), urgent=True)
    gate.set()
    with qtbot.waitSignals([slow.finished, quick.finished]):
        pass
    assert order.index("quick") <= 1
    assert order.count("long") == 50


def test_a_short_job_need_not_wait_for_the_end_of_a_long_one(qtbot, jobs):
    gate, begun, ended = threading.Event(), threading.Event(), []

    def counts(n):
        for i in range(n):
            begun.set()
            gate.wait(10)
            yield Progress(i + 1, n)
        ended.append(n)

    long = jobs.start(lambda: counts(50))
    begun.wait(10)
    short = jobs.start(lambda: counts(3))
    gate.set()
    with qtbot.waitSignals([long.finished, short.finished]):
        pass
    assert ended == [3, 50]


def test_two_hundred_random_cancels_each_end_once(qtbot, jobs):
    rng = random.Random(4)
    closed = []
    listeners = []
    for _ in range(200):
        job = jobs.start(counting(rng.randrange(1, 30), closed), urgent=rng.random() < 0.3)
        listeners.append((job, Listener(job)))
        if rng.random() < 0.8:
            rng.choice(listeners)[0].cancel()
        if rng.random() < 0.2:
            QCoreApplication.processEvents()  # so that cancels meet every stage
    qtbot.waitUntil(lambda: not jobs.busy, timeout=20_000)
    assert all(len(listener.ends) == 1 for _, listener in listeners)
    assert not any(job.running for job, _ in listeners)
    for _, listener in listeners:
        assert listener.ends[0] in ("finished", "cancelled")


def test_shutdown_in_the_middle_of_a_job_closes_it_and_ends_the_thread(qtbot, jobs):
    closed, begun = [], threading.Event()

    def endless():
        try:
            while True:
                begun.set()
                yield Progress(0, 1)
        finally:
            closed.append(True)

    job = jobs.start(endless)
    listener = Listener(job)
    begun.wait(10)
    jobs.shutdown()
    assert closed == [True]
    assert listener.ends == []
    with pytest.raises(RuntimeError, match="shut down"):
        jobs.start(endless)


def test_worker_runs_in_inference_mode(qtbot):
    import torch

    from circuitview.gui.jobs import worker_context

    jobs = JobRunner(worker_context)
    job = jobs.start(torch.is_inference_mode_enabled)
    with qtbot.waitSignal(job.finished) as heard:
        pass
    jobs.shutdown()
    assert heard.args == [True]
    assert not torch.is_inference_mode_enabled()


def test_worker_survives_what_is_no_exception(qtbot, jobs, caplog):
    class Fault(BaseException):
        pass

    def break_down():
        raise Fault("index out of bounds")

    def break_down_later():
        yield Progress(1, 2)
        raise Fault("later")

    for work, words in ((break_down, "index out of bounds"), (break_down_later, "later")):
        job = jobs.start(work)
        with qtbot.waitSignal(job.failed) as heard:
            pass
        assert words in heard.args[0].text
        assert not heard.args[0].expected
    job = jobs.start(lambda: 3)
    with qtbot.waitSignal(job.finished) as heard:
        pass
    assert heard.args == [3]
    assert len(caplog.records) == 2

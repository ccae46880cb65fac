"""A generator run to its end."""


def finish(generator):
    """The progress that it reports, and its result."""
    steps = []
    while True:
        try:
            steps.append(next(generator))
        except StopIteration as stop:
            return steps, stop.value


def result_of(generator):
    return finish(generator)[1]

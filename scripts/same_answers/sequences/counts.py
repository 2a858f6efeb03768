"""Servers that keep state of their own per client, and clocks."""

from sequences import sequence

SAME = {"thought": "the same thought", "nextThoughtNeeded": True, "thoughtNumber": 1,
        "totalThoughts": 3}


def counted(number):
    return f'"thoughtHistoryLength": {number}'


@sequence("thinking", modern=True, run=True)
def equal_calls_of_a_tool_that_counts(t):
    a = t.session()
    for number in range(1, 4):
        t.expect(counted(number), a.thinking.sequentialthinking(**SAME))


@sequence("thinking")
def equal_thoughts_at_several_distances(t):
    a = t.session()
    for number, pause in enumerate((0, 0, 0, 0.4, 2.0, 2.0), 1):
        t.wait(pause)
        t.expect(counted(number), a.thinking.sequentialthinking(**SAME))


@sequence("thinking")
def thoughts_of_two_clients(t):
    a, b = t.session(), t.session()
    for number in range(1, 4):
        t.expect(counted(2 * number - 1), a.thinking.sequentialthinking(**SAME))
        t.expect(counted(number), b.thinking.sequentialthinking(**SAME))
        t.expect(counted(2 * number), a.thinking.sequentialthinking(**SAME))


@sequence("thinking")
def branches_of_two_clients(t):
    a, b = t.session(), t.session()
    a.thinking.sequentialthinking(**SAME)
    for client, branch in ((a, "left"), (b, "right"), (a, "middle"), (b, "right")):
        t.expect(branch, client.thinking.sequentialthinking(
            **{**SAME, "thoughtNumber": 2, "branchFromThought": 1, "branchId": branch}))


@sequence("thinking")
def parallel_equal_thoughts(t):
    a, b = t.session(), t.session()
    t.together(*(lambda client=client: client.thinking.sequentialthinking(**SAME)
                 for client in (a, a, a, b, b)))
    t.expect(counted(4), a.thinking.sequentialthinking(**SAME))
    t.expect(counted(3), b.thinking.sequentialthinking(**SAME))


@sequence("thinking")
def a_new_session_starts_from_nothing(t):
    for _ in range(3):
        a = t.session()
        for number in (1, 2):
            t.expect(counted(number), a.thinking.sequentialthinking(**SAME))


@sequence("thinking")
def a_session_after_one_that_ended(t):
    for _ in range(3):
        with t.session() as a:
            for number in (1, 2):
                t.expect(counted(number), a.thinking.sequentialthinking(**SAME))


@sequence("time", modern=True)
def clock_over_seconds(t):
    a, b = t.session(), t.session()
    for pause in (0, 0, 0.4, 2.0, 2.0, 3.0):
        t.wait(pause)
        t.expect("UTC", a.time.get_current_time(timezone="UTC"))
        b.time.get_current_time(timezone="Asia/Tokyo")
        b.time.get_current_time(timezone="UTC")

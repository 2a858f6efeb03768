"""Web pages that change, read by the fetch server; the filesystem server can write some."""

from sequences import sequence


@sequence("fetch")
def page_changed_by_a_person(t):
    t.world.write("site/news.txt", "first\n")
    a, url = t.session(), t.url("news.txt")
    for text in ("second", "third"):
        a.fetch.fetch(url=url)
        a.fetch.fetch(url=url, raw=True)
        with t.outside() as person:
            person.write("site/news.txt", f"{text}\n")
        t.expect(text, a.fetch.fetch(url=url))
        t.expect(text, a.fetch.fetch(url=url, raw=True))


@sequence("fetch", "filesystem")
def page_written_by_the_filesystem_server(t):
    t.world.write("site/status.txt", "pending\n")
    a, url, path = t.session(), t.url("status.txt"), t.at("site/status.txt")
    for text in ("running\n", "done\n", "pending\n"):
        a.fetch.fetch(url=url)
        a.filesystem.write_file(path=path, content=text)
        t.expect(text.strip(), a.fetch.fetch(url=url))
    a.filesystem.move_file(source=path, destination=t.at("site/old.txt"))
    a.fetch.fetch(url=url)
    t.expect("pending", a.fetch.fetch(url=t.url("old.txt")))


@sequence("fetch")
def poll_a_page_until_it_says_done(t):
    t.world.write("site/job.txt", "pending\n")
    a, url = t.session(), t.url("job.txt")
    for _ in range(6):
        t.expect("pending", a.fetch.fetch(url=url))
        t.wait(0.5)
    with t.outside() as person:
        person.write("site/job.txt", "done\n")
    t.expect("done", a.fetch.fetch(url=url))


@sequence("fetch", run=True)
def missing_page_appears(t):
    a, url = t.session(), t.url("later.txt")
    for _ in range(3):
        a.fetch.fetch(url=url)
    with t.outside() as person:
        person.write("site/later.txt", "here it is\n")
    t.expect("here it is", a.fetch.fetch(url=url))
    with t.outside() as person:
        person.remove("site/later.txt")
    a.fetch.fetch(url=url)


@sequence("fetch")
def parts_of_a_page_that_changes(t):
    t.world.write("site/long.txt", "".join(f"first {n}\n" for n in range(20)))
    a, url = t.session(), t.url("long.txt")

    def parts():
        a.fetch.fetch(url=url, max_length=50)
        return a.fetch.fetch(url=url, max_length=50, start_index=50)

    parts()
    with t.outside() as person:
        person.write("site/long.txt", "".join(f"second {n}\n" for n in range(20)))
    t.expect("second", parts())


@sequence("fetch", modern=True, run=True)
def page_that_counts_its_requests(t):
    a, url = t.session(), t.url("count")
    for number, pause in enumerate((0, 0, 0, 0.4, 2.0), 1):
        t.wait(pause)
        t.expect(f"request number {number}", a.fetch.fetch(url=url))

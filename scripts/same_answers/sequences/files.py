"""A folder that the filesystem server, for several clients, and people change."""

from sequences import sequence


@sequence("filesystem", modern=True, run=True)
def edit_after_person_edits(t):
    t.world.write("a.txt", "first\n")
    a, path = t.session(), t.at("a.txt")
    a.filesystem.read_text_file(path=path)
    with t.outside() as person:
        person.write("a.txt", "second\n")
    t.expect("second", a.filesystem.read_text_file(path=path))
    edit = {"oldText": "second", "newText": "third"}
    t.expect("+third", a.filesystem.edit_file(path=path, edits=[edit]))
    t.expect("third", a.filesystem.read_text_file(path=path))


@sequence("filesystem", modern=True, run=True)
def mkdir_after_person_removes(t):
    a, path = t.session(), t.at("folder/inner")
    a.filesystem.create_directory(path=t.at("folder"))
    for _ in range(2):
        a.filesystem.create_directory(path=path)
        t.expect("inner", a.filesystem.list_directory(path=t.at("folder")))
        with t.outside() as person:
            person.remove("folder/inner")
    a.filesystem.create_directory(path=path)
    t.expect("inner", a.filesystem.list_directory(path=t.at("folder")))
    a.filesystem.write_file(path=t.at("folder/inner/a.txt"), content="in it\n")


@sequence("filesystem")
def same_text_written_twice(t):
    a, path = t.session(), t.at("a.txt")
    a.filesystem.write_file(path=path, content="first\n")
    t.expect("first", a.filesystem.read_text_file(path=path))
    with t.outside() as person:
        person.write("a.txt", "by a person\n")
    t.expect("person", a.filesystem.read_text_file(path=path))
    a.filesystem.write_file(path=path, content="first\n")
    t.expect("first", a.filesystem.read_text_file(path=path))
    with t.outside() as person:
        person.remove("a.txt")
    a.filesystem.write_file(path=path, content="first\n")
    t.expect("first", a.filesystem.read_text_file(path=path))


@sequence("filesystem")
def writes_of_two_texts_in_turn(t):
    a, b, path = t.session(), t.session(), t.at("a.txt")
    for _ in range(3):
        for client, text in ((a, "one\n"), (b, "two\n")):
            client.filesystem.write_file(path=path, content=text)
            t.expect(text, a.filesystem.read_text_file(path=path))
            t.expect(text, b.filesystem.read_text_file(path=path))


@sequence("filesystem")
def listing_after_outside_changes(t):
    t.world.write("folder/a.txt", "a\n")
    a, b, path = t.session(), t.session(), t.at("folder")

    def look():
        b.filesystem.list_directory_with_sizes(path=path)
        return a.filesystem.list_directory(path=path)

    look()
    with t.outside() as person:
        person.write("folder/b.txt", "longer than a\n")
    t.expect("b.txt", look())
    with t.outside() as person:
        person.remove("folder/a.txt")
        person.rename("folder/b.txt", "folder/c.txt")
    t.expect("c.txt", look())


@sequence("filesystem")
def tree_after_changes(t):
    t.world.write("folder/a.txt", "a\n")
    a, b, path = t.session(), t.session(), t.at("folder")

    def look(client):
        client.filesystem.search_files(path=path, pattern="**/*.txt")
        return client.filesystem.directory_tree(path=path)

    look(a)
    b.filesystem.create_directory(path=t.at("folder/inner"))
    t.expect("inner", look(a))
    b.filesystem.write_file(path=t.at("folder/inner/b.txt"), content="b\n")
    t.expect("b.txt", look(a))
    look(b)
    with t.outside() as person:
        person.remove("folder/inner")
        person.write("folder/c.txt", "c\n")
    t.expect("c.txt", look(a))
    t.expect("c.txt", look(b))


@sequence("filesystem")
def moved_by_one_read_by_another(t):
    t.world.write("a.txt", "text\n")
    a, b = t.session(), t.session()
    there, back = [{"source": t.at(f"{x}.txt"), "destination": t.at(f"{y}.txt")}
                   for x, y in ("ab", "ba")]
    b.filesystem.read_text_file(path=t.at("a.txt"))
    b.filesystem.read_text_file(path=t.at("b.txt"))
    for move, name in ((there, "b"), (back, "a"), (there, "b")):
        a.filesystem.move_file(**move)
        t.expect("text", b.filesystem.read_text_file(path=t.at(f"{name}.txt")))
        b.filesystem.read_text_file(path=t.at("a.txt"))
        b.filesystem.read_text_file(path=t.at("b.txt"))
        b.filesystem.list_directory(path=t.at(""))
    with t.outside() as person:
        person.rename("b.txt", "a.txt")
    a.filesystem.move_file(**there)
    t.expect("text", b.filesystem.read_text_file(path=t.at("b.txt")))


@sequence("filesystem", run=True)
def poll_until_a_file_appears(t):
    a, path = t.session(), t.at("done.txt")
    for _ in range(5):
        a.filesystem.read_text_file(path=path)
        t.wait(0.3)
    with t.outside() as person:
        person.write("done.txt", "done\n")
    t.expect("done", a.filesystem.read_text_file(path=path))


@sequence("filesystem")
def poll_until_a_log_ends(t):
    t.world.write("build.log", "running\n")
    a, b, path = t.session(), t.session(), t.at("build.log")
    for _ in range(6):
        a.filesystem.read_text_file(path=path, tail=1)
        b.filesystem.read_text_file(path=path, tail=1)
        t.wait(0.6)
    with t.outside() as person:
        person.write("build.log", "running\nfinished")
    t.expect("finished", a.filesystem.read_text_file(path=path, tail=1))
    t.expect("finished", b.filesystem.read_text_file(path=path, tail=1))


@sequence("filesystem", run=True)
def failed_edit_works_after_a_person_fixed_it(t):
    t.world.write("a.txt", "something else\n")
    a, path = t.session(), t.at("a.txt")
    edit = {"oldText": "wanted", "newText": "changed"}
    for _ in range(3):
        a.filesystem.edit_file(path=path, edits=[edit])
    with t.outside() as person:
        person.write("a.txt", "wanted\n")
    t.expect("+changed", a.filesystem.edit_file(path=path, edits=[edit]))
    t.expect("changed", a.filesystem.read_text_file(path=path))
    with t.outside() as person:
        person.write("a.txt", "wanted\n")
    t.expect("+changed", a.filesystem.edit_file(path=path, edits=[edit]))


@sequence("filesystem")
def failed_write_works_after_a_person_made_the_folder(t):
    a, path = t.session(), t.at("folder/a.txt")
    for _ in range(2):
        a.filesystem.write_file(path=path, content="text\n")
        a.filesystem.list_directory(path=t.at("folder"))
    with t.outside() as person:
        person.write("folder/other.txt", "other\n")
    a.filesystem.write_file(path=path, content="text\n")
    t.expect("a.txt", a.filesystem.list_directory(path=t.at("folder")))


@sequence("filesystem", modern=True)
def two_clients_interleaved(t):
    t.world.write("a.txt", "0\n")
    a, b, path = t.session(), t.session(), t.at("a.txt")
    for number in range(4):
        writer, other = (a, b) if number % 2 else (b, a)
        for client in (a, b, a):
            t.expect(f"{number}", client.filesystem.read_text_file(path=path))
        edit = {"oldText": f"{number}", "newText": f"{number + 1}"}
        writer.filesystem.edit_file(path=path, edits=[edit])
        t.expect(f"{number + 1}", other.filesystem.read_text_file(path=path))


@sequence("filesystem", modern=True, run=True)
def equal_reads_at_several_distances(t):
    t.world.write("a.txt", "first\n")
    a, path = t.session(), t.at("a.txt")
    for text in ("first", "second", "third"):
        for pause in (0, 0, 0.4, 2.0):
            t.wait(pause)
            t.expect(text, a.filesystem.read_text_file(path=path))
        if text == "first":
            a.filesystem.write_file(path=path, content="second\n")
        elif text == "second":
            with t.outside() as person:
                person.write("a.txt", "third\n")


@sequence("filesystem")
def parallel_reads_then_a_write(t):
    t.world.write("a.txt", "0\n")
    a, b, path = t.session(), t.session(), t.at("a.txt")

    def reads(wanted):
        t.together(*(lambda client=client: t.expect(
            wanted, client.filesystem.read_text_file(path=path)) for client in (a, b) * 4))

    for number in range(3):
        reads(f"{number}")
        a.filesystem.write_file(path=path, content=f"{number + 1}\n")
    reads("3")
    with t.outside() as person:
        person.write("a.txt", "4\n")
    reads("4")


@sequence("filesystem")
def parallel_writes_of_many_files(t):
    a, b = t.session(), t.session()
    for text in ("first\n", "second\n", "first\n"):
        t.together(*(lambda client=client, name=name: client.filesystem.write_file(
            path=t.at(f"{name}.txt"), content=text) for client, name in zip((a, b) * 3, "uvwxyz")))
        for client in (b, a):
            t.expect(text, client.filesystem.read_multiple_files(
                paths=[t.at(f"{name}.txt") for name in "uvwxyz"]))


@sequence("filesystem")
def other_reads_of_a_written_file(t):
    t.world.write("a.txt", "1\n2\n3\n")
    a, b, path = t.session(), t.session(), t.at("a.txt")

    def look():
        a.filesystem.read_file(path=path)
        a.filesystem.read_text_file(path=path, head=1)
        b.filesystem.read_text_file(path=path, tail=1)
        b.filesystem.get_file_info(path=path)
        return a.filesystem.read_multiple_files(paths=[path, t.at("b.txt")])

    look()
    b.filesystem.write_file(path=path, content="one\n")
    t.expect("one", look())
    with t.outside() as person:
        person.write("b.txt", "by a person\n")
    t.expect("by a person", look())
    a.filesystem.edit_file(path=path, edits=[{"oldText": "one", "newText": "two\nthree"}])
    t.expect("three", look())


@sequence("filesystem")
def a_client_that_comes_back(t):
    t.world.write("a.txt", "first\n")
    path = t.at("a.txt")

    def read(wanted):
        with t.session() as a:
            t.expect(wanted, a.filesystem.read_text_file(path=path))

    read("first")
    with t.outside() as person:
        person.write("a.txt", "second\n")
    read("second")
    with t.session() as b:
        b.filesystem.write_file(path=path, content="third\n")
    read("third")
    read("third")

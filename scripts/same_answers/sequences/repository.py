"""A git repository that tools and people change, seen by the git and the filesystem server."""

from sequences import sequence


def first_commit(t, **files):
    """`a=text` writes a.txt, and so on."""
    for name, text in (files or {"a": "first\n"}).items():
        t.world.write(f"repo/{name}.txt", text)
    t.world.commit("the first commit")


@sequence("filesystem", "git", modern=True)
def commit_after_second_add(t):
    first_commit(t)
    a, path = t.session(), t.at("repo/a.txt")
    for text in ("second\n", "third\n"):
        a.filesystem.write_file(path=path, content=text)
        t.expect("staged", a.git.git_add(repo_path=t.repo, files=["a.txt"]))
    a.git.git_commit(repo_path=t.repo, message="the last text")
    t.expect("+third", a.git.git_show(repo_path=t.repo, revision="HEAD"))


@sequence("filesystem", "git")
def diff_after_write(t):
    first_commit(t)
    a, path = t.session(), t.at("repo/a.txt")
    for text in ("second", "third"):
        a.git.git_diff(repo_path=t.repo, target="HEAD")
        a.git.git_diff_unstaged(repo_path=t.repo)
        a.git.git_status(repo_path=t.repo)
        a.filesystem.write_file(path=path, content=text + "\n")
        t.expect("+" + text, a.git.git_diff(repo_path=t.repo, target="HEAD"))
        t.expect("+" + text, a.git.git_diff_unstaged(repo_path=t.repo))
        t.expect("modified", a.git.git_status(repo_path=t.repo))


@sequence("filesystem", "git")
def read_after_checkout(t):
    first_commit(t)
    t.world.git("checkout", "-qb", "topic")
    t.world.write("repo/a.txt", "on the topic\n")
    t.world.commit("a topic")
    a, path = t.session(), t.at("repo/a.txt")
    for branch, text in (("main", "first"), ("topic", "on the topic")) * 2:
        a.git.git_checkout(repo_path=t.repo, branch_name=branch)
        t.expect(text, a.filesystem.read_text_file(path=path))
        t.expect(text, a.filesystem.read_multiple_files(paths=[path]))


@sequence("filesystem", "git")
def read_after_person_switches_branch(t):
    first_commit(t)
    t.world.git("branch", "topic")
    t.world.write("repo/a.txt", "second\n")
    t.world.commit("second")
    a, path = t.session(), t.at("repo/a.txt")
    for branch, text in (("topic", "first"), ("main", "second")):
        a.filesystem.read_text_file(path=path)
        a.git.git_status(repo_path=t.repo)
        a.git.git_log(repo_path=t.repo)
        with t.outside() as person:
            person.git("checkout", "-q", branch)
        t.expect(text, a.filesystem.read_text_file(path=path))
        t.expect(branch, a.git.git_status(repo_path=t.repo))
        a.git.git_log(repo_path=t.repo)


@sequence("filesystem", "git")
def status_from_write_to_commit(t):
    first_commit(t)
    a = t.session()

    def look(wanted):
        t.expect(wanted, a.git.git_status(repo_path=t.repo))

    look("clean")
    a.filesystem.write_file(path=t.at("repo/b.txt"), content="new\n")
    look("Untracked")
    a.git.git_add(repo_path=t.repo, files=["b.txt"])
    look("new file")
    t.expect("+new", a.git.git_diff_staged(repo_path=t.repo))
    a.git.git_commit(repo_path=t.repo, message="add b")
    look("clean")
    t.expect("add b", a.git.git_log(repo_path=t.repo, max_count=1))


@sequence("git")
def log_after_person_commits(t):
    first_commit(t)
    a = t.session()
    for number in ("second", "third"):
        a.git.git_log(repo_path=t.repo)
        a.git.git_show(repo_path=t.repo, revision="HEAD")
        with t.outside() as person:
            person.write("repo/a.txt", f"{number}\n")
            person.commit(number)
        t.expect(number, a.git.git_log(repo_path=t.repo))
        t.expect(f"+{number}", a.git.git_show(repo_path=t.repo, revision="HEAD"))


@sequence("git")
def branches_made_by_tool_and_person(t):
    first_commit(t)
    a = t.session()
    a.git.git_branch(repo_path=t.repo, branch_type="local")
    a.git.git_create_branch(repo_path=t.repo, branch_name="topic")
    t.expect("topic", a.git.git_branch(repo_path=t.repo, branch_type="local"))
    with t.outside() as person:
        person.git("branch", "other")
        person.git("branch", "-D", "topic")
    t.expect("other", a.git.git_branch(repo_path=t.repo, branch_type="local"))
    # The same call again: it made a branch that is gone.
    a.git.git_create_branch(repo_path=t.repo, branch_name="topic")
    t.expect("topic", a.git.git_branch(repo_path=t.repo, branch_type="local"))


@sequence("git", run=True)
def add_and_reset_in_turn(t):
    first_commit(t)
    t.world.write("repo/a.txt", "second\n")
    a = t.session()
    for _ in range(3):
        a.git.git_add(repo_path=t.repo, files=["a.txt"])
        t.expect("+second", a.git.git_diff_staged(repo_path=t.repo))
        a.git.git_reset(repo_path=t.repo)
        a.git.git_diff_staged(repo_path=t.repo)


@sequence("git")
def add_and_reset_after_a_person_did(t):
    first_commit(t)
    t.world.write("repo/a.txt", "second\n")
    a = t.session()
    a.git.git_add(repo_path=t.repo, files=["a.txt"])
    t.expect("+second", a.git.git_diff_staged(repo_path=t.repo))
    with t.outside() as person:
        person.git("reset", "-q")
    a.git.git_diff_staged(repo_path=t.repo)
    t.expect("not staged", a.git.git_status(repo_path=t.repo))
    a.git.git_add(repo_path=t.repo, files=["a.txt"])
    t.expect("+second", a.git.git_diff_staged(repo_path=t.repo))
    with t.outside() as person:
        person.write("repo/a.txt", "third\n")
    a.git.git_add(repo_path=t.repo, files=["a.txt"])
    t.expect("+third", a.git.git_diff_staged(repo_path=t.repo))
    a.git.git_reset(repo_path=t.repo)
    with t.outside() as person:
        person.git("add", "a.txt")
    t.expect("to be committed", a.git.git_status(repo_path=t.repo))
    a.git.git_reset(repo_path=t.repo)
    t.expect("not staged", a.git.git_status(repo_path=t.repo))


@sequence("git")
def one_adds_the_other_commits(t):
    first_commit(t)
    t.world.write("repo/a.txt", "second\n")
    a, b = t.session(), t.session()
    a.git.git_status(repo_path=t.repo)
    b.git.git_status(repo_path=t.repo)
    a.git.git_add(repo_path=t.repo, files=["a.txt"])
    t.expect("to be committed", b.git.git_status(repo_path=t.repo))
    b.git.git_commit(repo_path=t.repo, message="second")
    t.expect("clean", a.git.git_status(repo_path=t.repo))
    t.expect("second", a.git.git_log(repo_path=t.repo))
    # Nothing is staged: the same call does not commit again.
    b.git.git_commit(repo_path=t.repo, message="second")
    a.git.git_log(repo_path=t.repo)


@sequence("filesystem", "git")
def person_stashes_and_pops(t):
    first_commit(t)
    a, path = t.session(), t.at("repo/a.txt")
    a.filesystem.write_file(path=path, content="second\n")
    for command, text in ((["stash", "-q"], "first"), (["stash", "pop", "-q"], "second")):
        a.filesystem.read_text_file(path=path)
        a.git.git_diff_unstaged(repo_path=t.repo)
        with t.outside() as person:
            person.git(*command)
        t.expect(text, a.filesystem.read_text_file(path=path))
        a.git.git_diff_unstaged(repo_path=t.repo)


@sequence("filesystem", "git")
def listing_after_checkout(t):
    first_commit(t)
    t.world.git("checkout", "-qb", "topic")
    t.world.write("repo/docs/b.txt", "b\n")
    t.world.commit("docs")
    t.world.git("checkout", "-q", "main")
    a, b = t.session(), t.session()
    for branch in ("topic", "main", "topic"):
        a.filesystem.list_directory(path=t.repo)
        b.filesystem.search_files(path=t.repo, pattern="**/b.txt")
        b.git.git_checkout(repo_path=t.repo, branch_name=branch)
        listed = a.filesystem.list_directory(path=t.repo)
        found = b.filesystem.search_files(path=t.repo, pattern="**/b.txt")
        if branch == "topic":
            t.expect("docs", listed)
            t.expect("b.txt", found)

"""A SQLite file that the sqlite server, the git and filesystem servers, and people change."""

from sequences import sequence

TABLE = "CREATE TABLE items (name TEXT, pieces INTEGER)"
SELECT = "SELECT name, pieces FROM items ORDER BY rowid"


@sequence("sqlite", modern=True)
def select_after_insert(t):
    t.world.sql(TABLE)
    a, b = t.session(), t.session()
    b.sqlite.read_query(query=SELECT)
    for _ in range(3):
        # The same statement each time: every one of them adds a row.
        a.sqlite.write_query(query="INSERT INTO items VALUES ('pen', 1)")
        t.expect("pen", a.sqlite.read_query(query=SELECT))
        t.expect("pen", b.sqlite.read_query(query=SELECT))
    t.expect("3", b.sqlite.read_query(query="SELECT count(*) AS n FROM items"))
    b.sqlite.write_query(query="UPDATE items SET pieces = pieces + 1")
    b.sqlite.write_query(query="UPDATE items SET pieces = pieces + 1")
    t.expect("3}", a.sqlite.read_query(query=SELECT))


@sequence("sqlite")
def select_after_another_program_inserts(t):
    t.world.sql(TABLE)
    a, b = t.session(), t.session()
    for name in ("pen", "ink", "nib"):
        a.sqlite.read_query(query=SELECT)
        b.sqlite.read_query(query=SELECT)
        with t.outside() as person:
            person.sql(f"INSERT INTO items VALUES ('{name}', 1)")
        t.expect(name, a.sqlite.read_query(query=SELECT))
        t.expect(name, b.sqlite.read_query(query=SELECT))


@sequence("sqlite", run=True)
def schema_after_changes(t):
    a = t.session()

    def look():
        a.sqlite.describe_table(table_name="items")
        return a.sqlite.list_tables()

    look()
    a.sqlite.create_table(query=TABLE)
    t.expect("items", look())
    with t.outside() as person:
        person.sql("ALTER TABLE items ADD COLUMN price REAL", "CREATE TABLE clients (name TEXT)")
    t.expect("clients", look())
    with t.outside() as person:
        person.sql("DROP TABLE items")
    look()
    a.sqlite.create_table(query=TABLE)
    t.expect("items", look())


@sequence("sqlite", modern=True, run=True)
def select_of_what_differs_each_time(t):
    a = t.session()
    for pause in (0, 0, 0.2, 0.4, 2.0):
        t.wait(pause)
        a.sqlite.read_query(query="SELECT hex(randomblob(8)) AS some")
        a.sqlite.read_query(query="SELECT strftime('%Y-%m-%dT%H:%M:%SZ', 'now') AS now")


@sequence("sqlite")
def insert_works_after_a_person_made_the_table(t):
    a = t.session()
    insert = "INSERT INTO items VALUES ('pen', 1)"
    for _ in range(3):
        a.sqlite.write_query(query=insert)
        a.sqlite.read_query(query=SELECT)
    with t.outside() as person:
        person.sql(TABLE)
    t.expect("affected_rows", a.sqlite.write_query(query=insert))
    t.expect("pen", a.sqlite.read_query(query=SELECT))


@sequence("sqlite", "git")
def database_in_a_repository(t):
    t.world.database = "repo/shop.db"
    t.world.sql(TABLE)
    t.world.commit("an empty table")
    a, b = t.session(), t.session()
    t.expect("clean", b.git.git_status(repo_path=t.repo))
    a.sqlite.write_query(query="INSERT INTO items VALUES ('pen', 1)")
    t.expect("modified", b.git.git_status(repo_path=t.repo))
    b.git.git_create_branch(repo_path=t.repo, branch_name="stocked")
    b.git.git_checkout(repo_path=t.repo, branch_name="stocked")
    b.git.git_add(repo_path=t.repo, files=["shop.db"])
    b.git.git_commit(repo_path=t.repo, message="stock")
    for branch in ("main", "stocked", "main"):
        b.git.git_checkout(repo_path=t.repo, branch_name=branch)
        rows = a.sqlite.read_query(query=SELECT)
        t.expect("pen" if branch == "stocked" else "[]", rows)
    with t.outside() as person:
        person.git("checkout", "-q", "stocked")
    t.expect("pen", a.sqlite.read_query(query=SELECT))


@sequence("sqlite", "filesystem")
def database_moved_by_the_filesystem_server(t):
    t.world.sql(TABLE, "INSERT INTO items VALUES ('pen', 1)")
    t.world.sql(TABLE, "INSERT INTO items VALUES ('ink', 2)", database="other.db")
    a, b = t.session(), t.session()
    t.expect("pen", a.sqlite.read_query(query=SELECT))
    for source, target in (("shop", "old"), ("other", "shop")):
        b.filesystem.move_file(source=t.at(f"{source}.db"), destination=t.at(f"{target}.db"))
    t.expect("ink", a.sqlite.read_query(query=SELECT))
    with t.outside() as person:
        person.rename("shop.db", "other.db")
        person.rename("old.db", "shop.db")
    t.expect("pen", a.sqlite.read_query(query=SELECT))


@sequence("sqlite", "filesystem")
def size_of_a_database_that_grows(t):
    t.world.sql(TABLE)
    a, b, path = t.session(), t.session(), t.at("shop.db")
    b.filesystem.get_file_info(path=path)
    for number in range(2):
        a.sqlite.create_table(query=f"CREATE TABLE more{number} (text TEXT)")
        b.filesystem.get_file_info(path=path)
    with t.outside() as person:
        person.sql("CREATE TABLE most (text TEXT)")
    b.filesystem.get_file_info(path=path)
    t.expect("most", a.sqlite.list_tables())

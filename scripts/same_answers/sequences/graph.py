"""The memory server's graph: one file, written by a process per client, and readable by others."""

from sequences import sequence


def entity(name, *observations):
    return {"name": name, "entityType": "person", "observations": list(observations)}


@sequence("memory")
def graph_of_two_clients(t):
    a, b = t.session(), t.session()
    b.memory.read_graph()
    a.memory.create_entities(entities=[entity("Ada", "writes programs")])
    t.expect("Ada", b.memory.read_graph())
    b.memory.add_observations(
        observations=[{"entityName": "Ada", "contents": ["met Babbage"]}])
    t.expect("Babbage", a.memory.search_nodes(query="Babbage"))
    t.expect("Babbage", a.memory.open_nodes(names=["Ada"]))
    b.memory.create_entities(entities=[entity("Charles")])
    knows = {"from": "Ada", "to": "Charles", "relationType": "knows"}
    a.memory.create_relations(relations=[knows])
    t.expect("knows", b.memory.read_graph())
    a.memory.delete_entities(entityNames=["Ada"])
    b.memory.read_graph()
    b.memory.search_nodes(query="Babbage")


@sequence("memory", run=True)
def entities_created_twice(t):
    a = t.session()
    for _ in range(3):
        a.memory.create_entities(entities=[entity("Ada")])
    t.expect("Ada", a.memory.read_graph())
    with t.outside() as person:
        person.remove("memory.json")
    a.memory.create_entities(entities=[entity("Ada")])
    t.expect("Ada", a.memory.read_graph())


@sequence("memory")
def entities_deleted_again(t):
    a, b = t.session(), t.session()
    for creator, deleter in ((a, b), (b, a), (a, b)):
        creator.memory.create_entities(entities=[entity("Ada", "writes programs")])
        t.expect("Ada", deleter.memory.search_nodes(query="programs"))
        deleter.memory.delete_entities(entityNames=["Ada"])
        creator.memory.search_nodes(query="programs")
        deleter.memory.read_graph()


@sequence("memory")
def graph_edited_by_a_person(t):
    line = '{"type":"entity","name":"%s","entityType":"person","observations":[]}\n'
    t.world.write("memory.json", line % "Ada")
    a, b = t.session(), t.session()
    for name in ("Charles", "Mary"):
        a.memory.read_graph()
        b.memory.open_nodes(names=[name])
        with t.outside() as person:
            person.write("memory.json", line % name)
        t.expect(name, a.memory.read_graph())
        t.expect(name, b.memory.open_nodes(names=[name]))


@sequence("memory", "memory2")
def two_graphs_with_files_of_their_own(t):
    a, b = t.session(), t.session()
    for client, other in ((a, b), (b, a)):
        client.memory.read_graph()
        client.memory2.read_graph()
        client.memory.create_entities(entities=[entity("Ada")])
        t.expect("Ada", other.memory.read_graph())
        other.memory2.read_graph()
        other.memory2.create_entities(entities=[entity("Ada")])
        t.expect("Ada", client.memory2.read_graph())
        client.memory.delete_entities(entityNames=["Ada"])
        other.memory.read_graph()
        other.memory2.read_graph()


@sequence("memory", "filesystem", modern=True)
def graph_file_seen_by_the_filesystem_server(t):
    a, path = t.session(), t.at("memory.json")
    a.filesystem.read_text_file(path=path)
    a.memory.create_entities(entities=[entity("Ada")])
    t.expect("Ada", a.filesystem.read_text_file(path=path))
    a.memory.read_graph()
    a.filesystem.edit_file(path=path, edits=[{"oldText": "Ada", "newText": "Mary"}])
    t.expect("Mary", a.memory.read_graph())
    a.memory.delete_entities(entityNames=["Mary"])
    a.filesystem.read_text_file(path=path)
    a.filesystem.move_file(source=path, destination=t.at("old.json"))
    a.memory.read_graph()
    a.memory.create_entities(entities=[entity("Ada")])
    t.expect("Ada", a.filesystem.read_text_file(path=path))

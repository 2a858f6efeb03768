//! What is said of bad lines about a server or its tools.

use super::{is_refused, parse};

#[test]
fn bad_lines_of_servers_are_refused_with_line_key_and_what_was_expected() {
    for (text, line, key, expected) in [
        (
            "[servers.b]\ncommand = \"x\"\n[servers.b.tools.t]\nreads = [\"a\",\n  \"b{\"]\n",
            5,
            "servers.b.tools.t.reads.2",
            "is not closed",
        ),
        (
            "[servers.b]\ncommand = \"x\"\n[servers.b.tools.t]\nwrites = \"a\"\n",
            4,
            "servers.b.tools.t.writes",
            "a list of scopes",
        ),
        (
            "[servers.orders]\ncommand = \"x\"\n[servers.orders.tools.t]\nwrites = [\"@ordes/a\"]\n",
            4,
            "servers.orders.tools.t.writes.1",
            "did you mean `orders`?",
        ),
        (
            "[servers.b]\ncommand = \"x\"\nannotations = { reads = [\"a\"] }\n",
            3,
            "servers.b.annotations.reads",
            "unknown hint",
        ),
        (
            "[servers.b]\ncommand = \"x\"\nset = \"a\"\n[servers.b.tools.t]\nreads = []\n\
             [servers.c]\ncommand = \"x\"\nset = \"a\"\n[servers.c.tools.t]\nreads = [\"a\"]\n",
            9,
            "servers.c.tools.t",
            "the same hints, rules and scopes",
        ),
        (
            "[servers.\"a b\"]\ncommand = \"x\"\n",
            1,
            "servers.a b",
            "server id",
        ),
        ("[servers.b]\nweight = 1\n", 1, "servers.b", "`command`"),
        (
            "[servers.b]\ncommand = \"x\"\nurl = \"http://h/\"\n",
            3,
            "servers.b.url",
            "either",
        ),
        (
            "[servers.b]\nurl = \"ftp://h/\"\n",
            2,
            "servers.b.url",
            "http://",
        ),
        (
            "[servers.b]\nurl = \"http://h/\"\nargs = [\"-v\"]\n",
            3,
            "servers.b.args",
            "`command`",
        ),
        (
            "[servers.b]\ncommand = \"x\"\nheaders = { A = \"1\" }\n",
            3,
            "servers.b.headers",
            "`url`",
        ),
        (
            "[servers.b]\nurl = \"http://h/\"\nheaders = { \"A B\" = \"1\" }\n",
            3,
            "servers.b.headers.A B",
            "not a header name",
        ),
        (
            "[servers.b]\ncommand = \"x\"\nweight = 101\n",
            3,
            "servers.b.weight",
            "101 is not a weight: expected a whole number from 0 to 100",
        ),
        (
            "[servers.b]\ncommand = \"x\"\nweight = \"all\"\n",
            3,
            "servers.b.weight",
            "expected a whole number",
        ),
        (
            "[servers.b]\ncommand = \"x\"\nset = \"a__b\"\n",
            3,
            "servers.b.set",
            "__",
        ),
        (
            "[servers.b]\ncommand = \"x\"\nprefix = 3\n",
            3,
            "servers.b.prefix",
            "`false`",
        ),
        (
            "[servers.b]\ncommand = \"x\"\nmax_concurrent = 0\n",
            3,
            "servers.b.max_concurrent",
            "1 or more",
        ),
        (
            "[servers.b]\ncommand = \"x\"\nera = \"old\"\n",
            3,
            "servers.b.era",
            "`legacy`",
        ),
        (
            "[servers.b]\ncommand = \"x\"\nmax_message = \"1KiB\"\n",
            3,
            "servers.b.max_message",
            "4KiB",
        ),
        (
            "[servers.b]\ncommand = \"x\"\nmax_message = \"2GiB\"\n",
            3,
            "servers.b.max_message",
            "1GiB",
        ),
        (
            "[servers.b]\ncommand = \"x\"\ntrust = \"full\"\n",
            3,
            "servers.b.trust",
            "`untrusted`",
        ),
        (
            "[servers.b]\ncommand = \"x\"\nwieght = 1\n",
            3,
            "servers.b.wieght",
            "did you mean `weight`?",
        ),
        (
            "[servers.b]\ncomand = \"x\"\n",
            2,
            "servers.b.comand",
            "did you mean `command`?",
        ),
        (
            "[servers.b]\ncommand = \"npx -y foo\"\n",
            2,
            "servers.b.command",
            "command = \"npx\" and args = [\"-y\", \"foo\"]",
        ),
        (
            "[servers.b]\ncommand = 5\n",
            2,
            "servers.b.command",
            "expected a string",
        ),
        (
            "[servers.b]\ncommand = \"x\"\n[servers.b.tools.t]\nreadOnlyHnt = true\n",
            4,
            "servers.b.tools.t.readOnlyHnt",
            "did you mean `readOnlyHint`?",
        ),
        (
            "[servers.b]\ncommand = \"x\"\n[[servers.b.tools.t.rules]]\nreadOnlyHint = true\n\
             when = { action = \"list\", \"/a/b\" = { matches = \"(\" } }\n",
            5,
            "servers.b.tools.t.rules.1.when./a/b.matches",
            "unclosed",
        ),
        (
            "[servers.b]\ncommand = \"x\"\n[[servers.b.tools.t.rules]]\nwhen = { a = 1 }\n\
             readOnlyHint = true\n[[servers.b.tools.t.rules]]\nwhen = { a = 2 }\n\
             readOnlyHint = true\ndestructiveHint = true\n",
            9,
            "servers.b.tools.t.rules.2.destructiveHint",
            "destroys nothing",
        ),
        (
            "[servers.b]\ncommand = \"x\"\n[[servers.b.tools.t.rules]]\nreadOnlyHint = true\n",
            3,
            "servers.b.tools.t.rules.1",
            "expected `when`",
        ),
        (
            "[servers.b]\ncommand = \"x\"\n[servers.b.tools.t]\nrules = [{ when = { a = 1 } }]\n",
            4,
            "servers.b.tools.t.rules.1",
            "at least one hint",
        ),
        (
            "[servers.b]\ncommand = \"x\"\n[servers.b.tools.t]\nrules = true\n",
            4,
            "servers.b.tools.t.rules",
            "a list of tables",
        ),
        (
            "[servers.b]\ncommand = \"x\"\nset = \"s\"\n[[servers.b.tools.t.rules]]\n\
             when = { a = 1 }\nreadOnlyHint = true\n[servers.c]\ncommand = \"x\"\nset = \"s\"\n\
             [servers.c.tools.t]\nreadOnlyHint = true\n",
            10,
            "servers.c.tools.t",
            "hints, rules and scopes",
        ),
        (
            "[servers.b]\ncommand = \"x\"\nannotations = { openWorldHint = \"no\" }\n",
            3,
            "servers.b.annotations.openWorldHint",
            "expected a boolean",
        ),
        (
            "[servers.b]\ncommand = \"x\"\nset = \"a\"\n[servers.c]\ncommand = \"x\"\nset = \"a\"\nprefix = false\n",
            7,
            "servers.c.prefix",
            "same prefix",
        ),
    ] {
        is_refused(text, line, key, expected);
    }
}

#[test]
fn two_sets_with_the_same_prefix_are_an_error() {
    let text = "[servers.b]\ncommand = \"x\"\n\n[servers.a]\ncommand = \"x\"\nprefix = \"b\"\n";
    let error = parse(text).err().unwrap().to_string();
    assert!(error.contains("servers.a.prefix"), "{error}");
    assert!(error.contains("`servers.b`"), "{error}");
    let without = text.replace("prefix = \"b\"", "prefix = false");
    let config = parse(&without).unwrap();
    let order: Vec<_> = config.servers.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(order, ["b", "a"], "as they stand in the file");
}

#[test]
fn settings_of_instances_are_read_and_refused_at_their_keys() {
    for (line, key) in [
        ("max_instances = 0", "max_instances"),
        ("spare = 32", "spare"),
        ("idle = \"0s\"", "idle"),
        ("instances = \"client\"", "instances"),
    ] {
        let text = format!("[servers.b]\ncommand = \"x\"\n{line}\n");
        is_refused(&text, 3, &format!("servers.b.{key}"), "expected");
    }
    let config = parse(
        "[servers.a]\ncommand = \"x\"\ninstances = \"principal\"\nidle = \"1m\"\nmax_instances = 4\n",
    );
    let config = config.unwrap();
    let table = &config.servers[0].table;
    assert_eq!(table.instances, Some(callward::Instances::Principal));
    assert_eq!((table.idle.as_secs(), table.max_instances), (60, 4));
}

#[test]
fn servers_of_a_set_divide_their_state_alike() {
    let pair = |one: &str, other: &str| {
        parse(&format!(
            "[servers.a]\ncommand = \"x\"\nset = \"s\"\n{one}\n\
             [servers.b]\ncommand = \"x\"\nset = \"s\"\n{other}\n"
        ))
    };
    let session = "instances = \"session\"";
    assert!(pair(session, session).is_ok());
    assert!(pair("", "instances = \"shared\"").is_ok());
    let error = pair(session, "").err().unwrap().to_string();
    assert!(error.contains("servers.b.instances"), "{error}");
}

#[test]
fn lists_of_scopes_are_read_element_by_element() {
    let tool = |keys: &str| {
        let text = format!("[servers.a]\ncommand = \"x\"\n[servers.a.tools.t]\n{keys}\n");
        parse(&text).map(|config| {
            config.servers[0]
                .tools
                .values()
                .next()
                .cloned()
                .unwrap()
                .scopes
        })
    };
    let scopes = tool("reads = [\"order:{id}\", \"billing\"]\nwrites = []").unwrap();
    let expected = callward::cache::ToolScopes::reading(["order:{id}", "billing"]).unwrap();
    assert_eq!(scopes.reads, expected.reads);
    assert_eq!(scopes.writes, Some(Vec::new()));
    for (keys, key, expected) in [
        ("reads = \"order\"", "reads", "a list"),
        ("writes = [\"a\", \"b{\"]", "writes.2", "not closed"),
        ("writes = [\"\"]", "writes.1", "is empty"),
        ("reads = [1]", "reads.1", "as a string"),
        ("reads = [\"@a b\"]", "reads.1", "is not a scope"),
    ] {
        let error = tool(keys).err().unwrap();
        let [fault] = error.faults() else {
            panic!("one fault expected in {keys:?}: {error}");
        };
        assert_eq!(fault.key, format!("servers.a.tools.t.{key}"));
        assert!(fault.message.contains(expected), "{keys}: {error}");
    }
}

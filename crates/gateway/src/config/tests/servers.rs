//! What is said of bad lines about a server or its tools.

use super::{are_refused, is_refused, parse};

#[test]
fn bad_lines_of_servers_are_refused_with_line_key_and_what_was_expected() {
    are_refused(
        r#"
[servers.b] ⏎ command = "x" ⏎ [servers.b.tools.t] ⏎ reads = ["a",
    "b{"] # servers.b.tools.t.reads.2: is not closed
[servers.b] ⏎ command = "x" ⏎ [servers.b.tools.t]
  writes = "a" # servers.b.tools.t.writes: a list of scopes
[servers.orders] ⏎ command = "x" ⏎ [servers.orders.tools.t]
  writes = ["@ordes/a"] # servers.orders.tools.t.writes.1: did you mean `orders`?
[servers.b] ⏎ command = "x"
  annotations = { reads = ["a"] } # servers.b.annotations.reads: unknown hint
[servers.b] ⏎ command = "x" ⏎ set = "a" ⏎ [servers.b.tools.t] ⏎ reads = [] ⏎ [servers.c]
  command = "x" ⏎ set = "a"
  [servers.c.tools.t] # servers.c.tools.t: the same hints, rules and scopes ⏎ reads = ["a"]
[servers."a b"] # servers.a b: server id ⏎ command = "x"
[servers.b] # servers.b: `command` ⏎ weight = 1
[servers.b] ⏎ command = "x" ⏎ url = "http://h/" # servers.b.url: either
[servers.b] ⏎ url = "ftp://h/" # servers.b.url: http://
[servers.b] ⏎ url = "http://h/" ⏎ args = ["-v"] # servers.b.args: `command`
[servers.b] ⏎ command = "x" ⏎ headers = { A = "1" } # servers.b.headers: `url`
[servers.b] ⏎ url = "http://h/"
  headers = { "A B" = "1" } # servers.b.headers.A B: not a header name
[servers.b] ⏎ command = "x"
  weight = 101 # servers.b.weight: 101 is not a weight: expected a whole number from 0 to 100
[servers.b] ⏎ command = "x" ⏎ weight = "all" # servers.b.weight: expected a whole number
[servers.b] ⏎ command = "x" ⏎ set = "a__b" # servers.b.set: __
[servers.b] ⏎ command = "x" ⏎ prefix = 3 # servers.b.prefix: `false`
[servers.b] ⏎ command = "x" ⏎ max_concurrent = 0 # servers.b.max_concurrent: 1 or more
[servers.b] ⏎ command = "x" ⏎ era = "old" # servers.b.era: `legacy`
[servers.b] ⏎ command = "x" ⏎ max_message = "1KiB" # servers.b.max_message: 4KiB
[servers.b] ⏎ command = "x" ⏎ max_message = "2GiB" # servers.b.max_message: 1GiB
[servers.b] ⏎ command = "x" ⏎ trust = "full" # servers.b.trust: `untrusted`
[servers.b] ⏎ command = "x" ⏎ wieght = 1 # servers.b.wieght: did you mean `weight`?
[servers.b] ⏎ comand = "x" # servers.b.comand: did you mean `command`?
[servers.b]
  command = "npx -y foo" # servers.b.command: command = "npx" and args = ["-y", "foo"]
[servers.b] ⏎ command = 5 # servers.b.command: expected a string
[servers.b] ⏎ command = "x" ⏎ [servers.b.tools.t]
  readOnlyHnt = true # servers.b.tools.t.readOnlyHnt: did you mean `readOnlyHint`?
[servers.b] ⏎ command = "x" ⏎ [[servers.b.tools.t.rules]] ⏎ readOnlyHint = true
  when = {a = 1, "/a/b" = {matches = "("}} # servers.b.tools.t.rules.1.when./a/b.matches: unclosed
[servers.b] ⏎ command = "x" ⏎ [[servers.b.tools.t.rules]] ⏎ when = { a = 1 }
  readOnlyHint = true ⏎ [[servers.b.tools.t.rules]] ⏎ when = { a = 2 } ⏎ readOnlyHint = true
  destructiveHint = true # servers.b.tools.t.rules.2.destructiveHint: destroys nothing
[servers.b] ⏎ command = "x"
  [[servers.b.tools.t.rules]] # servers.b.tools.t.rules.1: expected `when` ⏎ readOnlyHint = true
[servers.b] ⏎ command = "x" ⏎ [servers.b.tools.t]
  rules = [{ when = { a = 1 } }] # servers.b.tools.t.rules.1: at least one hint
[servers.b] ⏎ command = "x" ⏎ [servers.b.tools.t]
  rules = true # servers.b.tools.t.rules: a list of tables
[servers.b] ⏎ command = "x" ⏎ set = "s" ⏎ [[servers.b.tools.t.rules]] ⏎ when = { a = 1 }
  readOnlyHint = true ⏎ [servers.c] ⏎ command = "x" ⏎ set = "s"
  [servers.c.tools.t] # servers.c.tools.t: hints, rules and scopes ⏎ readOnlyHint = true
[servers.b] ⏎ command = "x"
  annotations = { openWorldHint = "no" } # servers.b.annotations.openWorldHint: expected a boolean
[servers.b] ⏎ command = "x" ⏎ set = "a" ⏎ [servers.c] ⏎ command = "x" ⏎ set = "a"
  prefix = false # servers.c.prefix: same prefix
"#,
    );
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

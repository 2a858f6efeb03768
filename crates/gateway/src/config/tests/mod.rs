//! Files that must be refused, and what is said about each; and files that are fine. How settings
//! are read and shown is in `tests/golden/check.md`.

mod defaults;
mod pages;

use super::*;

const REFUSED: &str = include_str!("../../../tests/golden/refused.txt");

pub(super) fn parse(text: &str) -> Result<Config, ConfigError> {
    let env = |name: &str| match name {
        "TOKEN" => Some("hunter2".into()),
        "PORT" => Some("80".into()),
        "EMPTY" => Some("".into()),
        _ => None,
    };
    Config::parse_with(Path::new("t.toml"), text, &env, Servers::Some)
}

fn refusal(text: &str) -> ConfigError {
    let refused = parse(text).err();
    refused.unwrap_or_else(|| panic!("accepted:\n{text}"))
}

#[test]
fn bad_files_are_refused_with_all_faults_at_their_lines() {
    let mut wrong = Vec::new();
    for text in REFUSED.split("---\n").skip(1) {
        // a good server follows, so that each fault is one of a comment
        let error = refusal(&format!("{text}[servers.good]\ncommand = \"x\"\n"));
        let expected = (1..).zip(text.lines()).filter_map(|(line, text)| {
            let (key, message) = text.split_once(" # ")?.1.split_once(": ")?;
            Some((line, key, message))
        });
        let expected: Vec<(usize, _, _)> = expected.collect();
        assert!(!expected.is_empty(), "no fault is expected in\n{text}");
        let said = error.to_string();
        let is_it = |(fault, (line, key, message)): (&Fault, &(usize, &str, &str))| {
            fault.at.is_some_and(|(at, column)| {
                let place = format!("t.toml:{line}:{column}: `{key}`: ");
                at == *line && fault.message.contains(message) && said.contains(&place)
            })
        };
        let is_right =
            error.faults.len() == expected.len() && error.faults.iter().zip(&expected).all(is_it);
        if !is_right {
            wrong.push(format!("{text}{error}\n"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_file_without_servers_is_refused() {
    for text in ["", "[servers]\n"] {
        let error = refusal(text).to_string();
        assert!(error.contains("expected at least one server"), "{error}");
    }
}

#[test]
fn a_text_that_is_not_toml_is_refused_at_its_line() {
    for (text, line, expected) in [
        ("profile = \"standard\"\n[http\n", 2, "unclosed table"),
        (
            "profile = \"strict\"\n\nprofile = \"epd\"\n",
            3,
            "another `profile`",
        ),
        (
            "[http]\nlisten = \"1\"\nlisten = \"2\"\n",
            3,
            "another `listen`",
        ),
        ("{\n  \"mcpServers\": { \"a\": {} }\n}\n", 1, "found JSON"),
    ] {
        let error = refusal(text);
        assert_eq!(error.faults[0].at.unwrap().0, line, "{error}");
        assert!(error.faults[0].message.contains(expected), "{error}");
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), b"rules = \"standard\"\n# caf\xe9\n").unwrap();
    let error = Config::load(file.path(), Servers::Some)
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("UTF-8"), "{error}");
    let error = refusal("profile = \"strict\"\n").to_string();
    assert_eq!(error.matches("[servers.NAME]").count(), 1, "{error}");
}

#[test]
fn servers_are_read_in_their_order_with_sets_prefixes_and_tools() {
    let config = parse(
        r#"
        [cache]
        idempotent_writes = false
        [servers.d]
        command = "x"
        set = "s"
        [servers.c]
        url = "http://h:1/mcp"
        prefix = false
        instances = "shared"
        [servers.b]
        command = "x"
        prefix = "p"
        [servers.b.tools.t]
        readOnly = false
        costHint = 3
        reads = ["order:{id}"]
        writes = []
        verify_with = "get_payment"
        max_concurrent = 2
        [[servers.b.tools.t.rules]]
        when = { "/target/kind" = "draft", action = { matches = "close|hide" } }
        destructiveHint = false
        [[servers.b.tools.t.rules]]
        readOnlyHint = true
        [servers.b.tools.t.rules.when]
        n = 1
        list = [1, "a"]
        object = { equals = { a = [true] } }
        choice = { one_of = [1.5, "x"] }
        force = { present = false }
        given = { present = true }
        # how many calls each gets at once is its own
        [servers.a]
        command = "x"
        set = "s"
        tools = { u = { max_concurrent = 1 } }
        "#,
    );
    let config = config.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(config.profile.idempotent_ttl, None);
    let prefixes = config
        .servers
        .iter()
        .map(|one| (one.id.as_str(), one.prefix.as_deref()));
    let expected = [
        ("d", Some("s")),
        ("c", None),
        ("b", Some("p")),
        ("a", Some("s")),
    ];
    assert!(prefixes.eq(expected));
    let tool = config.servers[2].table.tools.values().next().unwrap();
    assert_eq!(tool.hints.read_only_hint, Some(false));
    assert_eq!(tool.hints.cost_hint, Some(3.0));
    let reads = vec!["order:{id}".parse().unwrap()];
    assert_eq!((&tool.reads, &tool.writes), (&Some(reads), &Some(vec![])));
    assert_eq!(
        tool.verify_with.as_ref().map(|name| name.as_str()),
        Some("get_payment")
    );
    assert_eq!(tool.max_concurrent.map(|calls| calls.get()), Some(2));
    let rules = tool.rules.iter().flatten();
    let rules = rules.map(|rule| rule.0.when().to_string());
    let expected = [
        r#"/target/kind = "draft" and action wholly matches "close|hide""#,
        "choice is 1.5 or \"x\" and force is absent and given is present and list = [1,\"a\"] \
         and n = 1 and object = {\"a\":[true]}",
    ];
    assert!(rules.eq(expected), "{:?}", tool.rules);
}
